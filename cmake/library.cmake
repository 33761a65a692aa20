# SPDX-License-Identifier: Apache-2.0
#
# libcudnn.so.9: all of src/ but the CPU module, compiled once (warpdnn_core) and linked twice: into
# the shared library with its fixed list of exports, and into warpdnn_static, which tests of the
# inside link. The shared library needs libc, libm, libdl and libpthread only, and takes its own
# calls directly, for it is loaded into programs that may hold another libcudnn. It is never unloaded
# (nodelete): the CUDA driver calls back when a graph dies.

file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS src/*.c)
list(FILTER core_sources EXCLUDE REGEX "_cpu\\.c$")
list(FILTER core_sources EXCLUDE REGEX "/src/cpu/module/")
warpdnn_embed_kernels(core_sources)

add_library(warpdnn_core OBJECT ${core_sources})
target_link_libraries(warpdnn_core PUBLIC warpdnn_flags)
target_compile_definitions(warpdnn_core PUBLIC WD_WITH_CUDA=${WARPDNN_WITH_CUDA}
    $<$<BOOL:${WARPDNN_WITH_CUDA}>:WD_CUDA_VERSION=${WARPDNN_CUDA_VERSION}>)
add_dependencies(warpdnn_core warpdnn_build_id)

# The export list: each name of abi/exported_symbols.txt under the node that programs ask for, our
# extensions under one of their own, nothing else.
set(exports_list ${PROJECT_SOURCE_DIR}/abi/exported_symbols.txt)
set(exports_map ${PROJECT_BINARY_DIR}/generated/libcudnn.map)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exports_list})
file(STRINGS ${exports_list} export_names REGEX "^[A-Za-z_]")
list(JOIN export_names ";\n    " export_text)
file(CONFIGURE OUTPUT ${exports_map} CONTENT
"libcudnn.so.9 {
  global:
    @export_text@;
};
WARPDNN_1 {
  global:
    warpdnn*;
  local:
    *;
};
" @ONLY)

# Objects can be given twice (shared and static), so both carry the same libraries at link time.
set(core_link_libraries m ${CMAKE_DL_LIBS} Threads::Threads)
if(WARPDNN_WITH_CUDA)
    list(APPEND core_link_libraries ${WARPDNN_LZMA})
    set_property(SOURCE src/gpu/image.c APPEND PROPERTY INCLUDE_DIRECTORIES ${WARPDNN_LZMA_INCLUDE})
endif()

add_library(warpdnn_shared SHARED $<TARGET_OBJECTS:warpdnn_core>)
add_library(WarpDNN::cudnn ALIAS warpdnn_shared)
set_target_properties(warpdnn_shared PROPERTIES OUTPUT_NAME cudnn VERSION 9.19.0 SOVERSION 9
    EXPORT_NAME cudnn LINKER_LANGUAGE C LINK_DEPENDS ${exports_map})
target_include_directories(warpdnn_shared PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include/warpdnn>)
target_link_libraries(warpdnn_shared PRIVATE ${core_link_libraries})
target_link_options(warpdnn_shared PRIVATE -Wl,--version-script=${exports_map} -Wl,-Bsymbolic
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,nodelete -Wl,--as-needed -static-libgcc)
# clang leaves its sanitizer runtime to the program, so there the library has undefined names.
if(NOT WARPDNN_SANITIZERS OR CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_link_options(warpdnn_shared PRIVATE -Wl,--no-undefined)
endif()

add_library(warpdnn_static STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:warpdnn_core>)
set_target_properties(warpdnn_static PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(warpdnn_static PUBLIC warpdnn_flags ${core_link_libraries})
target_compile_definitions(warpdnn_static INTERFACE WD_WITH_CUDA=${WARPDNN_WITH_CUDA})
