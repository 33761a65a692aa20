# SPDX-License-Identifier: Apache-2.0
#
# Tests, examples and bench. One file is one program:
#
#   tests/F/X_test.c   -> build/tests/F_X_test, with what it uses of the other .c files of tests/F/
#                         and of tests/support/, which are compiled once. It links the library's
#                         inside (warpdnn_static); in the folders of public_folders it links
#                         libcudnn.so.9 like any other program.
#   tests/golden/*.c   -> build/tests/golden, the recorder, on the public API
#   tests/clients/X.c  -> build/tests/clients_X, a program as a user would write it
#   tests/fake_driver/ -> build/tests/libfakecuda.so, a stand-in for libcuda.so.1
#   tests/emulator/    -> build/tests/libemulator.so, which runs the engines' kernels for it
#   examples/X.c       -> build/examples/X, with the .c files of examples/X/, on the public API
#   bench/*.c          -> build/bench/warpdnn_bench
#
# Test scripts (tests/F/*_test.py, *_test.sh) need no line here: tests/run.py finds them. It runs the
# programs that are listed in build/tests/manifest.txt.

set(public_folders api ops gpu golden clients)
set(test_dir ${PROJECT_BINARY_DIR}/tests)
set(manifest "")

# warpdnn_program(target outdir PUBLIC|INSIDE sources...): also links program_libraries, before the
# library, for what they use is in it.
set(program_libraries "")
function(warpdnn_program target outdir access)
    add_executable(${target} ${ARGN})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${outdir}
        BUILD_RPATH "\$ORIGIN/../lib;\$ORIGIN")
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
    if(access STREQUAL "PUBLIC")
        target_link_libraries(${target} PRIVATE warpdnn_warnings ${program_libraries}
            WarpDNN::cudnn m ${CMAKE_DL_LIBS} Threads::Threads)
        # RPATH, not RUNPATH: LD_LIBRARY_PATH must not put another libcudnn before ours.
        target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
    else()
        target_link_libraries(${target} PRIVATE ${program_libraries} warpdnn_static)
    endif()
    if(TARGET warpdnn_cpu)
        add_dependencies(${target} warpdnn_cpu)
    endif()
endfunction()

if(WARPDNN_BUILD_EXAMPLES)
    file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
    foreach(source IN LISTS example_sources)
        get_filename_component(name ${source} NAME_WE)
        file(GLOB parts CONFIGURE_DEPENDS examples/${name}/*.c)
        warpdnn_program(example_${name} examples PUBLIC ${source} ${parts})
        set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name})
        target_include_directories(example_${name} PRIVATE ${PROJECT_SOURCE_DIR}/examples)
        target_compile_definitions(example_${name} PRIVATE
            WARPDNN_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
    endforeach()
endif()

# The bench links no libcudnn: it opens ours and the peer's by absolute path. tools.cmake installs it.
if(WARPDNN_BUILD_BENCH)
    include(GNUInstallDirs)
    file(RELATIVE_PATH bench_library /${CMAKE_INSTALL_LIBEXECDIR}/warpdnn
        /${CMAKE_INSTALL_LIBDIR}/warpdnn)
    file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
    if(bench_sources)
        add_executable(warpdnn_bench ${bench_sources})
        set_target_properties(warpdnn_bench PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
        target_include_directories(warpdnn_bench PRIVATE ${PROJECT_SOURCE_DIR}/include)
        target_compile_definitions(warpdnn_bench PRIVATE _GNU_SOURCE=
            BENCH_INSTALLED_LIBRARY="${bench_library}")
        target_link_libraries(warpdnn_bench PRIVATE warpdnn_warnings m ${CMAKE_DL_LIBS}
            Threads::Threads)
        add_dependencies(warpdnn_bench warpdnn_shared)
        if(TARGET warpdnn_cpu)
            add_dependencies(warpdnn_bench warpdnn_cpu)
        endif()
    endif()
endif()

if(NOT WARPDNN_BUILD_TESTS)
    return()
endif()
find_library(WARPDNN_CMOCKA cmocka)
find_path(WARPDNN_CMOCKA_INCLUDE cmocka.h)
mark_as_advanced(WARPDNN_CMOCKA WARPDNN_CMOCKA_INCLUDE)
if(NOT WARPDNN_CMOCKA OR NOT WARPDNN_CMOCKA_INCLUDE)
    message(STATUS "Tests: not built, missing cmocka (libcmocka-dev)")
    return()
endif()
enable_testing()
file(MAKE_DIRECTORY ${test_dir})
# A test machine may have no cmocka: its library travels with the programs.
file(REAL_PATH ${WARPDNN_CMOCKA} cmocka_file)
file(COPY_FILE ${cmocka_file} ${test_dir}/libcmocka.so.0 ONLY_IF_DIFFERENT)

# A program of the inside looks for the CPU module beside itself.
if(TARGET warpdnn_cpu)
    file(CREATE_LINK ../lib/libwarpdnn_cpu.so ${test_dir}/libwarpdnn_cpu.so SYMBOLIC)
endif()

file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(test_support INTERFACE)
target_include_directories(test_support INTERFACE ${PROJECT_SOURCE_DIR}/tests
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${WARPDNN_CMOCKA_INCLUDE})
target_compile_definitions(test_support INTERFACE WD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
if(support_sources)
    add_library(test_support_objects STATIC ${support_sources})
    target_link_libraries(test_support_objects PRIVATE warpdnn_flags test_support)
    target_compile_definitions(test_support_objects PRIVATE WD_WITH_CUDA=${WARPDNN_WITH_CUDA})
    target_link_libraries(test_support INTERFACE test_support_objects)
endif()
target_link_libraries(test_support INTERFACE ${WARPDNN_CMOCKA} m)

file(GLOB fake_sources CONFIGURE_DEPENDS tests/fake_driver/*.c)
list(FILTER fake_sources EXCLUDE REGEX "_test\\.c$")
if(fake_sources)
    add_library(fakecuda SHARED ${fake_sources})
    set_target_properties(fakecuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${test_dir}
        C_VISIBILITY_PRESET default)
    target_include_directories(fakecuda PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(fakecuda PRIVATE warpdnn_static)
    target_link_options(fakecuda PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
    include(cmake/emulator.cmake)
    if(TARGET emulator)
        add_dependencies(fakecuda emulator)
    endif()
endif()

# warpdnn_test_parts(folder PUBLIC|INSIDE): sets parts to the library of what the programs of a folder
# share, or to nothing.
set(folders_without_parts golden clients fake_driver emulator)
function(warpdnn_test_parts folder access)
    set(target test_parts_${folder})
    set(parts "" PARENT_SCOPE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${folder}/*.c)
    list(FILTER sources EXCLUDE REGEX "_test\\.c$")
    if(NOT sources OR folder IN_LIST folders_without_parts)
        return()
    endif()
    if(NOT TARGET ${target})
        add_library(${target} STATIC ${sources})
        target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
        target_link_libraries(${target} PRIVATE warpdnn_warnings test_support)
        if(access STREQUAL "INSIDE")
            target_link_libraries(${target} PRIVATE warpdnn_static)
        endif()
    endif()
    set(parts ${target} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*_test.c)
if(NOT TARGET emulator)
    list(FILTER test_sources EXCLUDE REGEX "tests/emulator/")
endif()
foreach(source IN LISTS test_sources)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/tests ${source})
    string(REGEX REPLACE "/.*" "" folder ${path})
    string(REGEX REPLACE "\\.c$" "" name ${path})
    string(REPLACE "/" "_" name ${name})
    set(access INSIDE)
    if(folder IN_LIST public_folders)
        set(access PUBLIC)
    endif()
    warpdnn_test_parts(${folder} ${access})
    set(program_libraries ${parts} test_support)
    if(folder STREQUAL "emulator")
        # by flags: as a target it would add the folder to the path in which libraries are found
        list(APPEND program_libraries -L${test_dir} -lemulator)
    endif()
    warpdnn_program(${name} tests ${access} ${source})
    set(program_libraries "")
    if(TARGET fakecuda)
        add_dependencies(${name} fakecuda)
    endif()
    if(folder STREQUAL "emulator")
        target_compile_definitions(${name} PRIVATE
            $<TARGET_PROPERTY:emulator,INTERFACE_COMPILE_DEFINITIONS>)
    endif()
    add_test(NAME ${name} COMMAND ${name})
    string(APPEND manifest "${name} tests/${path}\n")
endforeach()

# What the driver's interface is held against, where a toolkit is installed.
find_path(WARPDNN_CUDA_HEADERS cudaTypedefs.h HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
    /usr/local/cuda/include)
mark_as_advanced(WARPDNN_CUDA_HEADERS)
if(WARPDNN_CUDA_HEADERS)
    target_include_directories(unit_gpu_driver_test SYSTEM PRIVATE ${WARPDNN_CUDA_HEADERS})
endif()

# A part of the tool that packs the kernels at build time.
file(GLOB ptx_sources CONFIGURE_DEPENDS tools/pack/ptx*.c)
target_sources(unit_ptx_shrink_test PRIVATE ${ptx_sources})
target_sources(unit_code_shrink_test PRIVATE tools/pack/code.c)

file(GLOB golden_sources CONFIGURE_DEPENDS tests/golden/*.c)
list(FILTER golden_sources EXCLUDE REGEX "_test\\.c$")
if(golden_sources)
    warpdnn_program(golden tests PUBLIC ${golden_sources})
endif()
file(GLOB client_sources CONFIGURE_DEPENDS tests/clients/*.c)
list(FILTER client_sources EXCLUDE REGEX "_test\\.c$")
foreach(source IN LISTS client_sources)
    get_filename_component(name ${source} NAME_WE)
    warpdnn_program(clients_${name} tests PUBLIC ${source})
endforeach()

file(CONFIGURE OUTPUT ${test_dir}/manifest.txt CONTENT "@manifest@" @ONLY)
