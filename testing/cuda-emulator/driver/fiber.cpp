// Blocks run one after another; the threads of a block are fibers that hand over at barriers and warp operations.
// A fiber takes a stack when it starts and gives it back when it ends, so threads that never wait share one.
#include "division.h"
#include "fiber.h"
#include "state.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulated {

constexpr size_t stack_size = 256 << 10, page = 4096;

#if defined(__x86_64__)
typedef void *Context;
extern "C" void um_emulated_switch(void **save, void *to);
// The registers that a function call keeps are on the old stack; its pointer is all that is saved.
asm(R"(
.text
.globl um_emulated_switch
.hidden um_emulated_switch
.type um_emulated_switch, @function
um_emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size um_emulated_switch, .-um_emulated_switch
)");
static void switch_to(Context *save, Context *to) { um_emulated_switch(save, *to); }
static void prepare(Context *context, char *stack, void (*start)()) {
  void **top = (void **)(stack + stack_size);
  *--top = nullptr; // the stack is aligned as after a call
  *--top = (void *)start;
  top -= 6;
  *context = top;
}
#else
typedef ucontext_t Context;
static void switch_to(Context *save, Context *to) { swapcontext(save, to); }
static void prepare(Context *context, char *stack, void (*start)()) {
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = stack_size;
  context->uc_link = nullptr;
  makecontext(context, start, 0);
}
#endif

struct Fiber {
  Context context;
  uint3 thread;
  char *stack;
  int op;
  unsigned mask, source;
  unsigned long long value, result;
};

struct Warp {
  unsigned live, ready, yielded, at_barrier, waiting; // sets of lanes
};

// The run that is going on; one at a time in the process, for `static __shared__` belongs to the module.
struct Run {
  const Launch *launch;
  um_emulated_state *state;
  Context scheduler;
  Fiber fibers[max_threads];
  Warp warps[max_threads / warp_size];
  unsigned threads, live, arrived, true_predicates, current;
  bool failed;
  int error;
  std::string message;
  sigjmp_buf on_fault;
};

// Never destroyed, as World.
static Run &run = *new Run(); // all zero: no fiber has a stack
static std::mutex &run_lock = *new std::mutex;
static std::vector<char *> &stacks = *new std::vector<char *>;
// Read by a signal handler: its place must not be allocated there.
static thread_local bool in_kernel __attribute__((tls_model("initial-exec"))) = false;
alignas(256) static char dynamic_shared[most_shared];

static char *take_stack() {
  if (!stacks.empty()) {
    char *stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  char *at = (char *)mmap(nullptr, stack_size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1, 0);
  if (at == MAP_FAILED) abort();
  mprotect(at, page, PROT_NONE); // what grows over the end faults
  return at + page;
}

static void give_stack(Fiber &fiber) {
  if (fiber.stack) stacks.push_back(fiber.stack);
  fiber.stack = nullptr;
}

static std::string where() {
  char text[200];
  const uint3 &b = run.state->block, &t = run.state->thread;
  snprintf(text, sizeof text, ", block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z, t.x, t.y, t.z);
  return std::string("kernel ") + run.launch->name + text;
}

static void hand_over() { switch_to(&run.fibers[run.current].context, &run.scheduler); }

static void fail(int error, const char *message) {
  if (!run.failed) {
    run.failed = true;
    run.error = error;
    run.message = where() + ": " + message;
  }
  for (;;) hand_over(); // never comes back
}

static unsigned long long barrier(int predicate) {
  Fiber &fiber = run.fibers[run.current];
  run.true_predicates += predicate != 0;
  run.warps[run.current / warp_size].at_barrier |= 1u << run.current % warp_size;
  run.arrived++;
  hand_over();
  return fiber.result;
}

template <typename F> static void each_lane(unsigned lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(__builtin_ctz(lanes));
}

static void release_barrier() {
  unsigned warps = (run.threads + warp_size - 1) / warp_size;
  unsigned long long result = run.true_predicates | (unsigned long long)(run.true_predicates == run.arrived) << 32;
  for (unsigned w = 0; w < warps; w++) {
    Warp &warp = run.warps[w];
    each_lane(warp.at_barrier, [&](unsigned l) { run.fibers[w * warp_size + l].result = result; });
    warp.ready |= warp.at_barrier;
    warp.at_barrier = 0;
  }
  run.arrived = run.true_predicates = 0;
}

// What a lane reads that takes no part: as a float or a double no number, as an integer a large one.
constexpr unsigned long long no_value = 0x7FF7A5A57FE7A5A5;

static unsigned long long combine(int op, unsigned long long a, unsigned long long b) {
  switch (op) {
  case UM_EMULATED_ADD: return (unsigned)(a + b);
  case UM_EMULATED_MIN: return (int)a < (int)b ? a : b;
  case UM_EMULATED_MAX: return (int)a > (int)b ? a : b;
  case UM_EMULATED_UMIN: return (unsigned)a < (unsigned)b ? a : b;
  case UM_EMULATED_UMAX: return (unsigned)a > (unsigned)b ? a : b;
  case UM_EMULATED_AND: return a & b;
  case UM_EMULATED_OR: return a | b;
  default: return a ^ b;
  }
}

// Ends the operation of the lanes in `mask` if all of them that still live have come to it.
static void try_complete(unsigned w, unsigned mask, int op) {
  Warp &warp = run.warps[w];
  Fiber *fibers = run.fibers + w * warp_size;
  unsigned members = mask & warp.live;
  if (!members || (warp.waiting & members) != members) return;
  bool same = true;
  each_lane(members, [&](unsigned l) { same &= fibers[l].mask == mask && fibers[l].op == op; });
  if (!same) return;
  unsigned long long all = 0;
  bool first = true;
  switch (op) {
  case UM_EMULATED_SYNC: break;
  case UM_EMULATED_SHUFFLE:
    each_lane(members, [&](unsigned l) {
      unsigned source = fibers[l].source;
      fibers[l].result = source < warp_size && members >> source & 1 ? fibers[source].value : no_value;
    });
    break;
  case UM_EMULATED_BALLOT:
    each_lane(members, [&](unsigned l) { all |= (unsigned long long)(fibers[l].value != 0) << l; });
    each_lane(members, [&](unsigned l) { fibers[l].result = all; });
    break;
  case UM_EMULATED_MATCH:
    each_lane(members, [&](unsigned l) {
      unsigned equal = 0;
      each_lane(members, [&](unsigned o) { equal |= (unsigned)(fibers[o].value == fibers[l].value) << o; });
      fibers[l].result = equal;
    });
    break;
  default:
    each_lane(members, [&](unsigned l) {
      all = first ? fibers[l].value : combine(op, all, fibers[l].value);
      first = false;
    });
    each_lane(members, [&](unsigned l) { fibers[l].result = all; });
  }
  warp.waiting &= ~members;
  warp.ready |= members;
}

static unsigned long long warp_operation(int op, unsigned mask, unsigned long long value, unsigned source) {
  unsigned w = run.current / warp_size, lane = run.current % warp_size;
  Fiber &fiber = run.fibers[run.current];
  if (!(mask >> lane & 1)) fail(CUDA_ERROR_LAUNCH_FAILED, "a warp operation whose mask leaves out the calling lane");
  fiber.op = op;
  fiber.mask = mask;
  fiber.value = value;
  fiber.source = source;
  run.warps[w].waiting |= 1u << lane;
  try_complete(w, mask, op);
  hand_over();
  return fiber.result;
}

static unsigned active_lanes() { return run.warps[run.current / warp_size].live; }

static void yield_lane() {
  run.warps[run.current / warp_size].yielded |= 1u << run.current % warp_size;
  hand_over();
}

static void fiber_main() {
  run.launch->entry->call(run.launch->parameters);
  unsigned w = run.current / warp_size;
  Warp &warp = run.warps[w];
  warp.live &= ~(1u << run.current % warp_size);
  run.live--;
  // Those that waited for this lane need not any more.
  for (unsigned left = warp.waiting; left; left &= warp.waiting & (left - 1)) {
    Fiber &other = run.fibers[w * warp_size + __builtin_ctz(left)];
    try_complete(w, other.mask, other.op);
  }
  for (;;) hand_over();
}

static void resume(unsigned index) {
  Fiber &fiber = run.fibers[index];
  run.current = index;
  run.state->thread = fiber.thread;
  run.state->lane = index % warp_size;
  if (!fiber.stack) {
    fiber.stack = take_stack();
    prepare(&fiber.context, fiber.stack, fiber_main);
  }
  switch_to(&run.scheduler, &fiber.context);
}

// EMULATED_CUDA_ORDER=reverse: the last block, warp and lane run first, which shows where a barrier is missing.
static bool reversed() {
  static const bool on = [] {
    const char *text = getenv("EMULATED_CUDA_ORDER");
    return text && !strcmp(text, "reverse");
  }();
  return on;
}

static void run_block() {
  unsigned warps = (run.threads + warp_size - 1) / warp_size;
  bool reverse = reversed();
  run.live = run.threads;
  run.arrived = run.true_predicates = 0;
  for (unsigned w = 0; w < warps; w++) {
    unsigned lanes = run.threads - w * warp_size;
    unsigned live = lanes >= warp_size ? ~0u : (1u << lanes) - 1;
    run.warps[w] = {live, live, 0, 0, 0};
  }
  memset(dynamic_shared, 0xA5, run.launch->dynamic_shared);
  for (auto &shared : run.launch->shared) memset(shared.first, 0xA5, shared.second);
  while (!run.failed && run.live) {
    bool progress = false;
    for (unsigned i = 0; i < warps && !run.failed; i++) {
      unsigned w = reverse ? warps - 1 - i : i;
      Warp &warp = run.warps[w];
      while (warp.ready && !run.failed) {
        unsigned lane = reverse ? 31 - __builtin_clz(warp.ready) : __builtin_ctz(warp.ready);
        warp.ready &= ~(1u << lane);
        resume(w * warp_size + lane);
        if (!(warp.live >> lane & 1)) give_stack(run.fibers[w * warp_size + lane]);
        progress = true;
      }
      warp.ready = warp.yielded;
      warp.yielded = 0;
    }
    if (run.live && run.arrived == run.live) release_barrier();
    else if (run.live && !progress) {
      unsigned waiting = 0;
      for (unsigned w = 0; w < warps; w++) waiting += __builtin_popcount(run.warps[w].waiting);
      char text[160];
      snprintf(text, sizeof text, "deadlock: of %u threads %u wait at a barrier of the block, %u at one of their warp",
               run.live, run.arrived, waiting);
      run.failed = true;
      run.error = CUDA_ERROR_LAUNCH_FAILED;
      run.message = where() + ": " + text;
    }
  }
}

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction previous_fault[3];

static void on_fault(int signal, siginfo_t *info, void *context) {
  if (!in_kernel) { // not ours: the handler that was there before sees it when it happens again
    for (int i = 0; i < 3; i++)
      if (faults[i] == signal) sigaction(signal, &previous_fault[i], nullptr);
    return;
  }
  if (signal == SIGFPE && divide_as_gpu(context)) return;
  char text[80];
  snprintf(text, sizeof text, ": illegal access of address %p", info->si_addr);
  run.failed = true;
  run.error = CUDA_ERROR_ILLEGAL_ADDRESS;
  run.message = where() + text;
  siglongjmp(run.on_fault, 1);
}

static void catch_faults() {
  static bool installed = false;
  if (!installed) {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 3; i++) sigaction(faults[i], &action, &previous_fault[i]);
    installed = true;
  }
  // The handler needs a stack of its own, for the fault may be that a fiber's stack is full.
  static thread_local char *own = nullptr;
  if (own) return;
  own = (char *)malloc(65536);
  stack_t stack = {};
  stack.ss_sp = own;
  stack.ss_size = 65536;
  sigaltstack(&stack, nullptr);
}

int run_grid(const Launch &launch, std::string *message) {
  std::lock_guard<std::mutex> guard(run_lock);
  catch_faults();
  um_emulated_state *state = launch.entry->state;
  run.launch = &launch;
  run.state = state;
  run.threads = launch.block.x * launch.block.y * launch.block.z;
  run.failed = false;
  const dim3 &b = launch.block;
  for (unsigned i = 0; i < run.threads; i++) run.fibers[i].thread = {i % b.x, i / b.x % b.y, i / b.x / b.y};
  state->block_dim = launch.block;
  state->grid_dim = launch.grid;
  state->shared = dynamic_shared;
  state->dynamic_shared = launch.dynamic_shared;
  state->barrier = barrier;
  state->warp = warp_operation;
  state->active = active_lanes;
  state->yield = yield_lane;
  state->fail = fail;
  if (!sigsetjmp(run.on_fault, 1)) {
    in_kernel = true;
    unsigned long long x = launch.grid.x, y = launch.grid.y, blocks = x * y * launch.grid.z;
    for (unsigned long long i = 0; i < blocks && !run.failed; i++) {
      unsigned long long at = reversed() ? blocks - 1 - i : i;
      state->block = {(unsigned)(at % x), (unsigned)(at / x % y), (unsigned)(at / x / y)};
      run_block();
    }
  }
  in_kernel = false;
  for (unsigned i = 0; i < run.threads; i++) give_stack(run.fibers[i]);
  if (run.failed) *message = run.message;
  return run.failed ? run.error : 0;
}

} // namespace emulated
