// Memory that the ranks of a communicator share: a file, whose name is its id's.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated_nccl {

const int MOST_RANKS = 8;
const size_t CHUNK = 64 << 10; // bytes that a rank shows to others at once

struct Message {
  std::atomic<uint64_t> written, read;
  uint64_t bytes; // of the whole message
  unsigned char chunk[CHUNK];
};

struct Shared {
  std::atomic<uint32_t> attached, size;
  std::atomic<uint64_t> arrived[MOST_RANKS]; // barriers that a rank has come to
  std::atomic<uint32_t> connected[MOST_RANKS];
  struct {
    int color, key;
  } split[MOST_RANKS];
  struct {
    uint64_t count;
    int call, dtype, op;
  } what[MOST_RANKS];
  unsigned char shown[MOST_RANKS][CHUNK];
  Message messages[MOST_RANKS][MOST_RANKS]; // from, to
};

struct Comm {
  Shared *shared = nullptr;
  std::string name;
  int rank = 0, size = 0, splits = 0;
  bool blocking = true;
  uint64_t barriers = 0;             // by the thread that runs the communicator's operations
  std::atomic<bool> aborted{false}; // operations under way end
  std::atomic<int> state{0}, under_way{0};
  std::atomic<bool> busy{false}; // a call is inside
};

// Maps the memory of a name, and waits for all ranks. False: aborted.
bool attach(Comm &comm);
void detach(Comm &comm);
// Waits until all ranks have come. False: aborted.
bool barrier(Comm &comm);

struct Call {
  enum Kind { all_reduce, all_gather, reduce_scatter, send, receive } kind;
  const unsigned char *from;
  unsigned char *to;
  size_t count;
  int dtype, op, peer;
};

size_t size_of(int dtype);
// Runs the calls of one group: collectives in their order, then all messages at once.
void run(Comm &comm, const Call *calls, size_t count);

} // namespace emulated_nccl
