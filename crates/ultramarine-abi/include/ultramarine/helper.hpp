/* Help for backends written in C++11: exceptions end at the boundary.
 *
 *   um_status prepare(...) {
 *     return um::guard(host, error, [&] {
 *       if (op != UM_OP_COPY) throw um::Failure(UM_UNSUPPORTED, "only copies");
 *       *plan = new Plan(...);
 *     });
 *   }
 *
 * um::Host wraps what the host lends; um::guard makes errors of exceptions, um::guard_value is for entries that cannot
 * tell an error. The rest is helper.h's. */
#ifndef ULTRAMARINE_HELPER_HPP
#define ULTRAMARINE_HELPER_HPP

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "helper.h"
#include "helper_loop.hpp"

namespace um {

/* An error with a status of its own. */
class Failure : public std::runtime_error {
 public:
  Failure(um_status code, const std::string &text) : std::runtime_error(text), code_(code == UM_OK ? UM_ERROR : code) {}
  explicit Failure(const std::string &text) : Failure(UM_ERROR, text) {}
  um_status code() const noexcept { return code_; }

 private:
  um_status code_;
};

namespace detail {

/* Hands an error to the host. Called while an exception is handled, so it throws none. */
inline um_status tell(const um_host_table *host, um_error **error, um_status code, const char *text) noexcept {
  if (error != nullptr && host != nullptr && host->error_new != nullptr) {
    *error = host->error_new(host->host, code, text, std::strlen(text));
  }
  return code;
}

template <typename Body>
typename std::enable_if<std::is_void<decltype(std::declval<Body &>()())>::value, um_status>::type call(Body &body) {
  body();
  return UM_OK;
}
template <typename Body>
typename std::enable_if<!std::is_void<decltype(std::declval<Body &>()())>::value, um_status>::type call(Body &body) {
  return body();
}

}  // namespace detail

/* Runs the body of an entry, which returns a status or nothing. What it throws becomes a status and an error. */
template <typename Body>
um_status guard(const um_host_table *host, um_error **error, Body body) noexcept {
  try {
    return detail::call(body);
  } catch (const Failure &failure) {
    return detail::tell(host, error, failure.code(), failure.what());
  } catch (const std::bad_alloc &) {
    return detail::tell(host, error, UM_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &exception) {
    return detail::tell(host, error, UM_ERROR, exception.what());
  } catch (...) {
    return detail::tell(host, error, UM_ERROR, "an exception of unknown type");
  }
}

/* Runs the body of an entry that cannot tell an error: what it throws is logged, the caller gets `otherwise`. */
template <typename Value, typename Body>
Value guard_value(const um_host_table *host, Value otherwise, Body body) noexcept {
  Value value = otherwise;
  um_host_table none = um_host_table();
  const um_host_table *log = host == nullptr ? &none : host;
  try {
    value = body();
  } catch (const std::exception &exception) {
    um_log(log, UM_LOG_ERROR, "%s", exception.what());
  } catch (...) {
    um_log(log, UM_LOG_ERROR, "an exception of unknown type");
  }
  return value;
}

/* A copy of the host's table, by min(size). */
class Host {
 public:
  explicit Host(const um_host_table *table) {
    if (!um_read_sized(&table_, sizeof table_, table)) throw Failure(UM_INVALID, "there is no host table");
  }

  const um_host_table *table() const noexcept { return &table_; }

  void log(uint32_t level, const std::string &text) const noexcept {
    if (table_.log != nullptr) table_.log(table_.host, level, text.data(), text.size());
  }

  uint32_t thread_count() const noexcept {
    uint32_t count = table_.thread_count == nullptr ? 1 : table_.thread_count(table_.host);
    return count == 0 ? 1 : count;
  }

  /* body(i) for every i < count, on the host's threads and the caller's. What a call throws ends that call only; the
   * first exception is thrown again after the loop. */
  template <typename Body>
  void parallel_for(uint64_t count, Body body) const {
    detail::Loop<Body> loop(body);
    um_parallel_for(&table_, count, &detail::Loop<Body>::call, &loop);
    if (loop.first) std::rethrow_exception(loop.first);
  }

 private:
  um_host_table table_;
};

/* Host memory, 256-byte aligned, freed at the end of its scope. */
class HostMemory {
 public:
  HostMemory(const Host &host, uint64_t bytes) : table_(*host.table()), data_(nullptr) {
    if (table_.alloc == nullptr || table_.free == nullptr) throw Failure(UM_UNSUPPORTED, "the host lends no memory");
    data_ = table_.alloc(table_.host, bytes == 0 ? 1 : bytes);
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~HostMemory() { reset(); }
  HostMemory(HostMemory &&other) noexcept : table_(other.table_), data_(other.data_) { other.data_ = nullptr; }
  HostMemory &operator=(HostMemory &&other) noexcept {
    if (this != &other) {
      reset();
      table_ = other.table_;
      std::swap(data_, other.data_);
    }
    return *this;
  }
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  void *data() const noexcept { return data_; }

 private:
  void reset() noexcept {
    if (data_ != nullptr) table_.free(table_.host, data_);
    data_ = nullptr;
  }
  um_host_table table_;
  void *data_;
};

}  // namespace um

#endif
