/* A plugin in C++ for the tests: its prepare throws what its op number says. */
#include <ultramarine/helper.hpp>

#include <atomic>
#include <memory>

UM_DEFINE_BACKEND("in_cpp", "", "0.1", kDLExtDev);

static std::unique_ptr<um::Host> host;

static um_status prepare(void *, uint32_t op, uint32_t, const void *, const um_tensor_desc *, uint32_t,
                         const um_tensor_desc *, uint32_t, void **, um_error **error) {
  return um::guard(host ? host->table() : nullptr, error, [&] {
    std::atomic<int> done(0);
    switch (op) {
      case 0: throw um::Failure(UM_UNSUPPORTED, "a failure");
      case 1: throw std::runtime_error("an exception");
      case 2: throw 7;
      case 3: throw std::bad_alloc();
      case 4:
        host->parallel_for(10, [&](uint64_t i) {
          done++;
          if (i == 3) throw um::Failure(UM_INVALID, "in a loop");
        });
        break;
      case 5: {
        um::HostMemory memory(*host, 100);
        std::memset(memory.data(), 1, 100);
        host->log(UM_LOG_INFO, "a message");
        break;
      }
      default: break;
    }
  });
}

static uint64_t workspace(void *, void *, const um_command *) {
  return um::guard_value<uint64_t>(host ? host->table() : nullptr, 42, []() -> uint64_t { throw 1; });
}

um_status ultramarine_backend_init(const um_host_table *lent, um_backend_table *table, um_error **error) {
  return um::guard(lent, error, [&] {
    host.reset(new um::Host(lent));
    um_backend_table mine = um_backend_table();
    mine.size = sizeof mine;
    mine.abi_major = UM_ABI_MAJOR;
    mine.abi_minor = UM_ABI_MINOR;
    mine.name = "in_cpp";
    mine.device_type = kDLExtDev;
    mine.prepare = prepare;
    mine.plan_workspace = workspace;
    um_sync_functions(&mine);
    if (!um_write_sized(table, &mine, sizeof mine)) throw um::Failure("no place for the table");
  });
}
