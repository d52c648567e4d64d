// The ranks' shared memory: where it is, and how they wait for each other. Ranks that are gone are waited for without end, as
// NCCL does within a host.
#include "shared.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace emulated_nccl {

static void pause_briefly() { usleep(100); }

bool attach(Comm &comm) {
  const char *folder = getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/emulated-nccl-" + comm.name;
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared))) {
    perror("emulated NCCL: the ranks' memory");
    abort();
  }
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    perror("emulated NCCL: the ranks' memory");
    abort();
  }
  comm.shared = (Shared *)memory;
  uint32_t none = 0;
  comm.shared->size.compare_exchange_strong(none, comm.size);
  if ((int)comm.shared->size.load() != comm.size) {
    fprintf(stderr, "emulated NCCL: rank %d says %d ranks, another one %u\n", comm.rank, comm.size, comm.shared->size.load());
    abort();
  }
  comm.shared->attached++;
  while ((int)comm.shared->attached.load() < comm.size) {
    if (comm.aborted) return false;
    pause_briefly();
  }
  unlink(path.c_str());
  return true;
}

void detach(Comm &comm) {
  if (comm.shared) munmap(comm.shared, sizeof(Shared));
  comm.shared = nullptr;
}

bool barrier(Comm &comm) {
  uint64_t number = ++comm.barriers;
  comm.shared->arrived[comm.rank].store(number);
  for (int rank = 0; rank < comm.size; rank++)
    for (int looks = 0; comm.shared->arrived[rank].load() < number; looks++) {
      if (comm.aborted) return false;
      if (looks > 20) pause_briefly();
    }
  return !comm.aborted;
}

} // namespace emulated_nccl
