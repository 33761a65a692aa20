# SPDX-License-Identifier: Apache-2.0
#
# Flags that every target shares: the language, the build types, the warnings, the sanitizers.
# Nothing here depends on the machine that builds: no -march=native, no -ffast-math.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Build trees can be moved (a test machine without a compiler runs what another one built).
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# NDEBUG is a property of the library (below), never of the tests: their asserts must bite.
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")

find_program(WARPDNN_CCACHE ccache)
mark_as_advanced(WARPDNN_CCACHE)
if(WARPDNN_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${WARPDNN_CCACHE})
endif()

set(THREADS_PREFER_PTHREAD_FLAG OFF)
find_package(Threads REQUIRED)

# Warnings, for every C file of ours.
add_library(warpdnn_warnings INTERFACE)
target_compile_options(warpdnn_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:
    -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wpointer-arith -Wwrite-strings -Wformat=2
    -Wno-format-nonliteral -Wimplicit-fallthrough>
    # Error texts are cut to their buffers on purpose.
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-Wno-format-truncation>)
if(WARPDNN_WERROR)
    target_compile_options(warpdnn_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>
        # gcc's guess, and it depends on what was inlined: worth reading, not worth a failed build.
        $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-Wno-error=maybe-uninitialized>)
endif()

# What the library and its CPU module are compiled with. Definitions are compiled by several
# compilers and must agree: no contraction of a * b + c behind the source's back.
add_library(warpdnn_flags INTERFACE)
target_link_libraries(warpdnn_flags INTERFACE warpdnn_warnings)
target_include_directories(warpdnn_flags INTERFACE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(warpdnn_flags INTERFACE
    _GNU_SOURCE= WD_VERSION="${PROJECT_VERSION}")
target_compile_options(warpdnn_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:
    -fPIC -ffp-contract=off -fno-math-errno -fno-semantic-interposition
    -ffunction-sections -fdata-sections>)

# Sanitizers: whole-program, so they are added to everything.
set(WARPDNN_SANITIZERS "")
if(WARPDNN_SANITIZE)
    string(REPLACE "," ";" WARPDNN_SANITIZERS "${WARPDNN_SANITIZE}")
    foreach(sanitizer IN LISTS WARPDNN_SANITIZERS)
        if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
            message(FATAL_ERROR "WARPDNN_SANITIZE: '${sanitizer}' is none of address, undefined, thread")
        endif()
        add_compile_options(-fsanitize=${sanitizer})
        add_link_options(-fsanitize=${sanitizer})
    endforeach()
    if("thread" IN_LIST WARPDNN_SANITIZERS AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "WARPDNN_SANITIZE=thread needs clang (-DCMAKE_C_COMPILER=clang): "
            "its OpenMP runtime is the one that the thread sanitizer understands")
    endif()
    add_compile_options(-g -fno-omit-frame-pointer)
    if("undefined" IN_LIST WARPDNN_SANITIZERS)
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_definitions(warpdnn_flags INTERFACE NDEBUG)
endif()
