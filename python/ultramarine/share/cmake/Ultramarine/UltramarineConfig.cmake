# find_package(Ultramarine): what backends and extensions of Ultramarine are built with.
#
#   Ultramarine_INCLUDE_DIR                 the directory of the C and C++ headers
#   Ultramarine::headers                    a target with that directory, to link with
#   ultramarine_add_backend(NAME SOURCE...)
#   ultramarine_add_extension(TARGET SOURCE...)
#
# Nothing of Ultramarine is linked: the host finds a backend's and a module's entry points when it loads them.
# CMake finds this package by -DUltramarine_DIR="$(python -m ultramarine cmake)".

include_guard(GLOBAL)

get_filename_component(Ultramarine_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../include" REALPATH)
if(NOT EXISTS "${Ultramarine_INCLUDE_DIR}/ultramarine/backend.h")
  set(Ultramarine_FOUND FALSE)
  set(Ultramarine_NOT_FOUND_MESSAGE
      "There are no headers in ${Ultramarine_INCLUDE_DIR}. Install the package ultramarine again.")
  return()
endif()

add_library(Ultramarine::headers INTERFACE IMPORTED)
set_target_properties(Ultramarine::headers PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${Ultramarine_INCLUDE_DIR}")

# Only entry points are visible: they are marked by the headers.
function(_ultramarine_module target)
  target_link_libraries(${target} PRIVATE Ultramarine::headers)
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # The oldest standards that the headers need, unless the project has one of its own.
  if(NOT CMAKE_C_STANDARD)
    set_target_properties(${target} PROPERTIES C_STANDARD 11)
  endif()
  if(NOT CMAKE_CXX_STANDARD)
    set_target_properties(${target} PROPERTIES CXX_STANDARD 11)
  endif()
endfunction()

# The backend NAME, as the target ultramarine-NAME: a library of the file name that the host looks for
# (libultramarine-NAME.so). NAME is the backend's, with its variant behind a hyphen if it has one, as it declares them.
function(ultramarine_add_backend name)
  if(NOT name MATCHES "^[a-z0-9_]+(-[a-z0-9_]+)?$")
    message(FATAL_ERROR "ultramarine_add_backend: ${name} is no name of a backend. "
      "Use lower-case letters, digits and underscores, and a hyphen before a variant.")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "ultramarine_add_backend: ${name} has no sources. Name at least one behind it.")
  endif()
  set(target "ultramarine-${name}")
  add_library(${target} MODULE ${ARGN})
  _ultramarine_module(${target})
  if(WIN32)
    set_target_properties(${target} PROPERTIES PREFIX "")
  elseif(APPLE)
    set_target_properties(${target} PROPERTIES PREFIX "lib" SUFFIX ".dylib")
  else()
    set_target_properties(${target} PROPERTIES PREFIX "lib" SUFFIX ".so")
  endif()
endfunction()

# A Python module of operations, as the target TARGET: one file that runs with every CPython from 3.11 on.
# Needs CMake 3.26 and Python's headers.
function(ultramarine_add_extension target)
  if(CMAKE_VERSION VERSION_LESS 3.26)
    message(FATAL_ERROR "ultramarine_add_extension needs CMake 3.26; this is ${CMAKE_VERSION}.")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "ultramarine_add_extension: ${target} has no sources. Name at least one behind it.")
  endif()
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.SABIModule)
  Python_add_library(${target} MODULE USE_SABI 3.11 WITH_SOABI ${ARGN})
  _ultramarine_module(${target})
endfunction()
