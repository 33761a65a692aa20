# SPDX-License-Identifier: Apache-2.0
#
# Install into folders of our own (lib/warpdnn, include/warpdnn), off the default loader path, where
# the library cannot stand in for another libcudnn by accident. find_package(WarpDNN) gives
# WarpDNN::cudnn; pkg-config knows "warpdnn".

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(WARPDNN_LIBDIR ${CMAKE_INSTALL_LIBDIR}/warpdnn)
set(WARPDNN_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/warpdnn)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/WarpDNN)

install(TARGETS warpdnn_shared EXPORT WarpDNNTargets LIBRARY DESTINATION ${WARPDNN_LIBDIR}
    INCLUDES DESTINATION ${WARPDNN_INCLUDEDIR})
if(TARGET warpdnn_cpu)
    install(TARGETS warpdnn_cpu LIBRARY DESTINATION ${WARPDNN_LIBDIR})
endif()
install(DIRECTORY include/ DESTINATION ${WARPDNN_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT WarpDNNTargets NAMESPACE WarpDNN:: DESTINATION ${package_dir})
configure_package_config_file(cmake/WarpDNNConfig.cmake.in
    ${PROJECT_BINARY_DIR}/generated/WarpDNNConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/WarpDNNConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/WarpDNNConfig.cmake
    ${PROJECT_BINARY_DIR}/generated/WarpDNNConfigVersion.cmake DESTINATION ${package_dir})
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(cmake/warpdnn.pc.in ${PROJECT_BINARY_DIR}/generated/warpdnn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/warpdnn.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
