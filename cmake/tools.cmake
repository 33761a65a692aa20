# SPDX-License-Identifier: Apache-2.0
#
# The warpdnn command (tools/warpdnn/ -> build/bin/warpdnn, PREFIX/bin/warpdnn), which links no
# libcudnn, and libwarpdnn_run.so, the checker that `warpdnn run` preloads, beside the library.
# `warpdnn bench` becomes warpdnn_bench, which is installed into PREFIX/libexec/warpdnn.

include(GNUInstallDirs)
set(tool_dir ${PROJECT_SOURCE_DIR}/tools/warpdnn)
file(GLOB tool_sources CONFIGURE_DEPENDS ${tool_dir}/*.c)
list(FILTER tool_sources EXCLUDE REGEX "/checker\\.c$")
set(tool_libexec ${CMAKE_INSTALL_LIBEXECDIR}/warpdnn)
set(tool_libdir ${CMAKE_INSTALL_LIBDIR}/warpdnn)
file(RELATIVE_PATH from_bin_library /${CMAKE_INSTALL_BINDIR} /${tool_libdir})
file(RELATIVE_PATH from_bin_libexec /${CMAKE_INSTALL_BINDIR} /${tool_libexec})
file(RELATIVE_PATH from_libexec_library /${tool_libexec} /${tool_libdir})
list(JOIN WARPDNN_CUDA_ARCHS " " tool_archs)

add_executable(warpdnn_tool ${tool_sources})
set_target_properties(warpdnn_tool PROPERTIES OUTPUT_NAME warpdnn
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_include_directories(warpdnn_tool PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(warpdnn_tool PRIVATE _GNU_SOURCE= WD_VERSION="${PROJECT_VERSION}"
    WARPDNN_FROM_BIN_LIBRARY="${from_bin_library}" WARPDNN_FROM_BIN_LIBEXEC="${from_bin_libexec}"
    WD_WITH_CUDA=${WARPDNN_WITH_CUDA} WD_CUDA_ARCHS="${tool_archs}"
    $<$<BOOL:${WARPDNN_WITH_CUDA}>:WD_CUDA_VERSION=${WARPDNN_CUDA_VERSION}>)
target_link_libraries(warpdnn_tool PRIVATE warpdnn_warnings ${CMAKE_DL_LIBS})
add_dependencies(warpdnn_tool warpdnn_build_id)

add_library(warpdnn_run MODULE ${tool_dir}/checker.c ${tool_dir}/maps.c)
target_include_directories(warpdnn_run PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(warpdnn_run PRIVATE _GNU_SOURCE=)
target_link_libraries(warpdnn_run PRIVATE warpdnn_warnings ${CMAKE_DL_LIBS})

install(TARGETS warpdnn_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS warpdnn_run LIBRARY DESTINATION ${tool_libdir})
if(TARGET warpdnn_bench)
    set_target_properties(warpdnn_bench PROPERTIES INSTALL_RPATH "\$ORIGIN/${from_libexec_library}")
    install(TARGETS warpdnn_bench RUNTIME DESTINATION ${tool_libexec})
endif()
