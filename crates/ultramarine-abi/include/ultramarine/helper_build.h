/* The compiler's knowledge of the binary that it makes: target, compiler, sanitizers, CPU features, and the ABI info
 * with its note. Included by helper.h. Each of UM_TARGET, UM_COMPILER, UM_SANITIZERS and UM_CPU_FEATURES may be
 * defined before to say something else. */
#ifndef ULTRAMARINE_HELPER_BUILD_H
#define ULTRAMARINE_HELPER_BUILD_H

#include "backend.h"

#if defined(__has_attribute)
#define UM_HAS_ATTRIBUTE(name) __has_attribute(name)
#else
#define UM_HAS_ATTRIBUTE(name) 0
#endif
#if defined(__has_feature)
#define UM_HAS_FEATURE(name) __has_feature(name)
#else
#define UM_HAS_FEATURE(name) 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#define UM_PRINTF_LIKE(place, first) __attribute__((format(printf, place, first)))
#else
#define UM_PRINTF_LIKE(place, first)
#endif

#define UM_TEXT_OF_(x) #x
#define UM_TEXT_OF(x) UM_TEXT_OF_(x)

/* ---- target ------------------------------------------------------------------------------------------------- */

#ifndef UM_TARGET
#if defined(__x86_64__) || defined(_M_X64)
#define UM_TARGET_ARCH "x86_64"
#elif defined(__aarch64__) || defined(_M_ARM64)
#define UM_TARGET_ARCH "aarch64"
#elif defined(__i386__) || defined(_M_IX86)
#define UM_TARGET_ARCH "i686"
#elif defined(__arm__)
#define UM_TARGET_ARCH "arm"
#elif defined(__riscv) && __riscv_xlen == 64
#define UM_TARGET_ARCH "riscv64gc"
#elif defined(__powerpc64__)
#define UM_TARGET_ARCH "powerpc64"
#elif defined(__wasm32__)
#define UM_TARGET_ARCH "wasm32"
#else
#define UM_TARGET_ARCH "unknown"
#endif
#if defined(__linux__) && defined(__ANDROID__)
#define UM_TARGET UM_TARGET_ARCH "-linux-android"
#elif defined(__linux__) && defined(__GLIBC__)
#define UM_TARGET UM_TARGET_ARCH "-unknown-linux-gnu"
#elif defined(__linux__)
#define UM_TARGET UM_TARGET_ARCH "-unknown-linux-musl"
#elif defined(__APPLE__)
#define UM_TARGET UM_TARGET_ARCH "-apple-darwin"
#elif defined(_WIN32) && defined(__MINGW32__)
#define UM_TARGET UM_TARGET_ARCH "-pc-windows-gnu"
#elif defined(_WIN32)
#define UM_TARGET UM_TARGET_ARCH "-pc-windows-msvc"
#elif defined(__FreeBSD__)
#define UM_TARGET UM_TARGET_ARCH "-unknown-freebsd"
#else
#define UM_TARGET UM_TARGET_ARCH "-unknown-unknown"
#endif
#endif

/* ---- compiler: numbers only, since some builds put an address into __VERSION__ that fills the field ---------- */

#ifndef UM_COMPILER
#if defined(__clang__)
#define UM_COMPILER \
  "clang " UM_TEXT_OF(__clang_major__) "." UM_TEXT_OF(__clang_minor__) "." UM_TEXT_OF(__clang_patchlevel__)
#elif defined(__GNUC__)
#define UM_COMPILER \
  "gcc " UM_TEXT_OF(__GNUC__) "." UM_TEXT_OF(__GNUC_MINOR__) "." UM_TEXT_OF(__GNUC_PATCHLEVEL__)
#elif defined(_MSC_VER)
#define UM_COMPILER "msvc " UM_TEXT_OF(_MSC_VER)
#else
#define UM_COMPILER "unknown"
#endif
#endif

/* ---- sanitizers --------------------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || UM_HAS_FEATURE(address_sanitizer)
#define UM_BUILT_WITH_ADDRESS UM_SANITIZER_ADDRESS
#else
#define UM_BUILT_WITH_ADDRESS 0u
#endif
#if defined(__SANITIZE_THREAD__) || UM_HAS_FEATURE(thread_sanitizer)
#define UM_BUILT_WITH_THREAD UM_SANITIZER_THREAD
#else
#define UM_BUILT_WITH_THREAD 0u
#endif
#if UM_HAS_FEATURE(memory_sanitizer)
#define UM_BUILT_WITH_MEMORY UM_SANITIZER_MEMORY
#else
#define UM_BUILT_WITH_MEMORY 0u
#endif
#if UM_HAS_FEATURE(dataflow_sanitizer) || defined(__SANITIZE_HWADDRESS__) || UM_HAS_FEATURE(hwaddress_sanitizer)
#define UM_BUILT_WITH_OTHER UM_SANITIZER_OTHER
#else
#define UM_BUILT_WITH_OTHER 0u
#endif
#ifndef UM_SANITIZERS
#define UM_SANITIZERS (UM_BUILT_WITH_ADDRESS | UM_BUILT_WITH_THREAD | UM_BUILT_WITH_MEMORY | UM_BUILT_WITH_OTHER)
#endif

#include "helper_cpu.h"

/* ---- the ABI info and its note ------------------------------------------------------------------------------ */

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define UM_ENDIANNESS UM_BIG_ENDIAN
#else
#define UM_ENDIANNESS UM_LITTLE_ENDIAN
#endif

#define UM_ABI_INFO_INITIALIZER(NAME, VARIANT, VERSION, DEVICE_TYPE)                                           \
  {                                                                                                            \
    (uint32_t)sizeof(um_backend_abi_info), UM_ABI_MAJOR, UM_ABI_MINOR, UM_DLPACK_MAJOR, UM_DLPACK_MINOR,       \
        (uint32_t)sizeof(um_backend_table), (uint8_t)(8 * sizeof(void *)), UM_ENDIANNESS, 0, (DEVICE_TYPE),    \
        UM_SANITIZERS, 0, NAME, VARIANT, VERSION, UM_TARGET, UM_COMPILER, UM_CPU_FEATURES                      \
  }

#if defined(_MSC_VER) && !defined(__clang__)
#pragma section(".umnote", read)
#define UM_NOTE_PLACE __declspec(allocate(".umnote"))
#elif defined(_WIN32)
#define UM_NOTE_PLACE __attribute__((section(".umnote"), used))
#elif defined(__APPLE__)
#define UM_NOTE_PLACE __attribute__((section("__TEXT,__ultramarine"), used))
#elif UM_HAS_ATTRIBUTE(retain)
#define UM_NOTE_PLACE __attribute__((section(".note.ultramarine"), used, retain, aligned(4)))
#else
#define UM_NOTE_PLACE __attribute__((section(".note.ultramarine"), used, aligned(4)))
#endif

/* ELF has the note around the info; the others have the bare info. */
#if defined(_WIN32) || defined(__APPLE__)
#define UM_NOTE_DEFINE(...) UM_NOTE_PLACE static const um_backend_abi_info um_backend_note = __VA_ARGS__
#define UM_NOTE_INFO (&um_backend_note)
#else
#define UM_NOTE_DEFINE(...)                                                                              \
  UM_NOTE_PLACE static const um_elf_note um_backend_note = {                                             \
      sizeof(UM_NOTE_OWNER), (uint32_t)sizeof(um_backend_abi_info), UM_NOTE_TYPE, UM_NOTE_OWNER, __VA_ARGS__}
#define UM_NOTE_INFO (&um_backend_note.info)
#endif

#ifdef __cplusplus
#define UM_EXTERN_C extern "C"
#else
#define UM_EXTERN_C
#endif

/* Once in a backend, at file scope: the note, and the entry point `ultramarine_backend_abi_info`. NAME as in the
 * file's name; VARIANT may be "". The device type is DLPack's: kDLExtDev for what it has no name for. */
#define UM_DEFINE_BACKEND(NAME, VARIANT, VERSION, DEVICE_TYPE)                                    \
  UM_NOTE_DEFINE(UM_ABI_INFO_INITIALIZER(NAME, VARIANT, VERSION, DEVICE_TYPE));                   \
  UM_EXTERN_C um_status ultramarine_backend_abi_info(um_backend_abi_info *info) {                 \
    return um_write_sized(info, UM_NOTE_INFO, sizeof(um_backend_abi_info)) ? UM_OK : UM_INVALID;  \
  }                                                                                               \
  struct um_backend_is_defined

#endif
