/* Helper classes for backends in C++11, whose exceptions must not cross the boundary to the host.
 *
 *   um_status prepare(...) {
 *     return um::guard(host, error, [&] {
 *       if (op != UM_OP_COPY) throw um::Failure(UM_UNSUPPORTED, "only copies");
 *       *plan = new Plan(...);
 *     });
 *   }
 *
 * um::guard turns exceptions into errors. um::guard_value is for entries that return no status. um::Host and um::HostMemory
 * wrap functions of the host. Everything of helper.h is here, too. */
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

/* The exception of a failed entry: a status, which is UM_ERROR unless another one is given, and a text for the user. */
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

/* Runs the body of an entry, which returns a status or nothing (UM_OK). An exception becomes a status, and an error object
 * if `error` is not null: a Failure its own status, std::bad_alloc UM_OUT_OF_MEMORY, any other UM_ERROR. */
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

/* Runs the body of an entry that returns no status, such as event_query. Returns the body's value; an exception is logged,
 * and `otherwise` is returned. */
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

/* A copy of the host's table, which stays valid as long as the process lives. Functions that an older host lacks do nothing,
 * or run in place. The constructor throws a Failure for a null table. */
class Host {
 public:
  explicit Host(const um_host_table *table) {
    if (!um_read_sized(&table_, sizeof table_, table)) throw Failure(UM_INVALID, "there is no host table");
  }

  const um_host_table *table() const noexcept { return &table_; }

  /* Logs a text; `level` is one of UM_LOG_... */
  void log(uint32_t level, const std::string &text) const noexcept {
    if (table_.log != nullptr) table_.log(table_.host, level, text.data(), text.size());
  }

  /* Returns the most threads that parallel_for uses, at least 1. */
  uint32_t thread_count() const noexcept {
    uint32_t count = table_.thread_count == nullptr ? 1 : table_.thread_count(table_.host);
    return count == 0 ? 1 : count;
  }

  /* Calls body(i) for every i < count, on the host's threads and the calling one, and returns when all calls have. An
   * exception ends its own call alone; the first one is thrown again after the loop. */
  template <typename Body>
  void parallel_for(uint64_t count, Body body) const {
    detail::Loop<Body> loop(body);
    um_parallel_for(&table_, count, &detail::Loop<Body>::call, &loop);
    if (loop.first) std::rethrow_exception(loop.first);
  }

 private:
  um_host_table table_;
};

/* Memory from the host's allocator, 256-byte aligned and uninitialised. It is freed at the end of its scope, and can be moved.
 * The constructor throws std::bad_alloc, or a Failure if the host lends no memory. */
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
