# SPDX-License-Identifier: Apache-2.0
#
# libwarpdnn_cpu.so: the fast CPU engines (src/**/*_cpu.c) and the module's own files
# (src/cpu/module/), on OpenMP and OpenBLAS. It carries its own copy of what it needs of the library
# and exports one name. Without OpenMP or OpenBLAS it is not built, and the definitions serve.

set(WARPDNN_WITH_CPU_MODULE 0)
file(GLOB_RECURSE module_sources CONFIGURE_DEPENDS src/*_cpu.c src/cpu/module/*.c)
find_package(OpenMP COMPONENTS C QUIET)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
endif()
set(module_missing "")
if(NOT OpenMP_C_FOUND)
    list(APPEND module_missing "OpenMP for ${CMAKE_C_COMPILER} (libgomp comes with gcc, clang needs libomp-dev)")
endif()
if(NOT OPENBLAS_FOUND)
    list(APPEND module_missing "OpenBLAS (libopenblas-dev, pkg-config)")
endif()
if(module_missing)
    list(JOIN module_missing " and " module_missing)
    message(STATUS "CPU module: not built, missing ${module_missing}; the CPU runs on definitions")
elseif(NOT module_sources)
    message(STATUS "CPU module: there are no sources yet")
else()
    message(STATUS "CPU module: OpenMP ${OpenMP_C_VERSION}, OpenBLAS ${OPENBLAS_VERSION}")
    set(WARPDNN_WITH_CPU_MODULE 1)
    set(module_map ${PROJECT_BINARY_DIR}/generated/libwarpdnn_cpu.map)
    file(CONFIGURE OUTPUT ${module_map}
        CONTENT "{ global: warpdnn_cpu_module; local: *; };\n" @ONLY)
    # Loops that are compiled for each instruction set are bound by their arithmetic: there a * b + c
    # is one operation where the machine has it.
    foreach(source IN LISTS module_sources)
        file(STRINGS ${source} has_loops REGEX "include .cpu/module/loops.inc")
        if(has_loops)
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)
        endif()
    endforeach()
    add_library(warpdnn_cpu MODULE ${module_sources})
    set_target_properties(warpdnn_cpu PROPERTIES LINK_DEPENDS ${module_map})
    add_dependencies(warpdnn_cpu warpdnn_build_id)
    target_compile_options(warpdnn_cpu PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-trapping-math)
    # gcc 12 lays the address sanitizer's fake frames on 32 bytes, whatever their variables need
    # (its PR 110027): a 64-byte vector on the stack would fault.
    if("address" IN_LIST WARPDNN_SANITIZERS AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_compile_options(warpdnn_cpu PRIVATE --param=asan-use-after-return=0)
    endif()
    target_link_libraries(warpdnn_cpu PRIVATE warpdnn_static OpenMP::OpenMP_C PkgConfig::OPENBLAS)
    target_link_options(warpdnn_cpu PRIVATE -Wl,--version-script=${module_map} -Wl,-Bsymbolic
        -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--as-needed)
    if(NOT WARPDNN_SANITIZERS OR CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_link_options(warpdnn_cpu PRIVATE -Wl,--no-undefined)
    endif()
endif()
