# SPDX-License-Identifier: Apache-2.0
#
# build/tests/libemulator.so: the engines' kernels, compiled for the host by clang++ (tests/emulator), so
# that the fake driver runs them; under the thread sanitizer it looks for races between their threads.
# WARPDNN_EMULATE=OFF leaves the kernels out, which take long to compile, so that they do nothing there;
# emulated.txt beside it says that they are in.
# Where clang++ is missing, for other processors, and under the other sanitizers (which do not know its
# fibres), there is none, and the fake driver launches kernels that do nothing.

option(WARPDNN_EMULATE "Compile the engines' kernels for the emulator" ON)
file(REMOVE ${test_dir}/emulated.txt)
find_program(WARPDNN_CLANGXX NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18)
mark_as_advanced(WARPDNN_CLANGXX)
set(emulator_allowed ON)
if(WARPDNN_SANITIZE AND NOT (WARPDNN_SANITIZE STREQUAL "thread" AND CMAKE_C_COMPILER_ID MATCHES "Clang"))
    set(emulator_allowed OFF)
endif()
if(NOT WARPDNN_CLANGXX OR NOT emulator_allowed OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    message(STATUS "Emulator of kernels: off")
    return()
endif()
if(WARPDNN_EMULATE)
    message(STATUS "Emulator of kernels: ${WARPDNN_CLANGXX}")
    file(WRITE ${test_dir}/emulated.txt "libemulator.so has the engines' kernels\n")
else()
    message(STATUS "Emulator of kernels: ${WARPDNN_CLANGXX}, without the kernels (WARPDNN_EMULATE=OFF)")
endif()

set(emulator_dir ${PROJECT_SOURCE_DIR}/tests/emulator)
set(emulator_flags -x c++ -std=c++17 -O1 -fPIC -fvisibility=hidden -w -DWARPDNN_NO_CUDA_HEADERS
    -include ${emulator_dir}/device.h -I${emulator_dir}/include -I${emulator_dir}
    -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
if(WARPDNN_SANITIZE)
    list(APPEND emulator_flags -g -fsanitize=thread)
endif()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/emulator)
set(emulated "")
if(WARPDNN_EMULATE)
    file(GLOB_RECURSE emulated CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cu)
endif()
list(FILTER emulated EXCLUDE REGEX "_def\\.cu$") # definitions have host functions of their own
set(emulator_objects "")
set(launcher "")
if(WARPDNN_CCACHE)
    set(launcher ${WARPDNN_CCACHE})
endif()
foreach(kernel IN LISTS emulated)
    get_filename_component(name ${kernel} NAME_WE)
    set(object ${PROJECT_BINARY_DIR}/emulator/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${launcher} ${WARPDNN_CLANGXX} ${emulator_flags} -MD -MF ${object}.d -c ${kernel}
            -o ${object}
        DEPENDS ${kernel} ${emulator_dir}/device.h
        DEPFILE ${object}.d
        COMMENT "Compiling ${name}.cu for the host" VERBATIM)
    list(APPEND emulator_objects ${object})
endforeach()
add_library(emulator SHARED ${emulator_dir}/emulator.c ${emulator_dir}/emulator_together.c
    ${emulator_objects})
set_source_files_properties(${emulator_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(emulator PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${test_dir}
    C_VISIBILITY_PRESET default LINKER_LANGUAGE C)
target_link_libraries(emulator PRIVATE warpdnn_warnings Threads::Threads m)
if(WARPDNN_SANITIZE)
    target_compile_definitions(emulator PUBLIC EMULATOR_FINDS_RACES)
    # it tells the sanitizer itself what orders what (races.h)
    set_source_files_properties(${emulator_dir}/emulator.c ${emulator_dir}/emulator_together.c PROPERTIES
        COMPILE_OPTIONS "-fno-sanitize=thread;-fno-builtin")
endif()
