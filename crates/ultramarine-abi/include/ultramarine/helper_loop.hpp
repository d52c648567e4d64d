/* The body of a parallel loop whose calls may throw. Included by helper.hpp and extension.hpp. */
#ifndef ULTRAMARINE_HELPER_LOOP_HPP
#define ULTRAMARINE_HELPER_LOOP_HPP

#include <cstdint>
#include <exception>
#include <mutex>

namespace um {
namespace detail {

/* Keeps the first exception of a loop's calls, to be thrown again behind it. What a call throws ends that call only. */
template <typename Body>
struct Loop {
  explicit Loop(Body &b) : body(b) {}
  static void call(void *context, uint64_t index) noexcept {
    Loop *loop = static_cast<Loop *>(context);
    try {
      loop->body(index);
    } catch (...) {
      try {
        std::lock_guard<std::mutex> locked(loop->lock);
        if (!loop->first) loop->first = std::current_exception();
      } catch (...) {
        /* a mutex that cannot be locked: the loop goes on */
      }
    }
  }
  Body &body;
  std::mutex lock;
  std::exception_ptr first;
};

}  // namespace detail
}  // namespace um

#endif
