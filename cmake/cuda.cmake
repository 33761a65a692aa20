# SPDX-License-Identifier: Apache-2.0
#
# GPU kernels: every src/**/X.cu becomes an image for each of WARPDNN_CUDA_ARCHS, machine code
# (X.sm_90a.cubin) or PTX (X.compute_90.ptx), packed (tools/pack) and embedded in the library by the assembler,
# behind a table (src/gpu/image.h), between the hidden symbols wd_images_X and wd_images_X_end. nvcc is a
# plain command here, so that the project needs no CUDA toolkit: without nvcc the same symbols exist with
# no bytes between them, and WD_WITH_CUDA is 0. Beside the images lies X.sm_90a.ptxas.txt, the compiler's
# report on registers, shared memory and spills.

set(WARPDNN_WITH_CUDA 0)
if(NOT WARPDNN_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "WARPDNN_CUDA=${WARPDNN_CUDA}: must be AUTO, ON or OFF")
endif()
if(WARPDNN_CUDA STREQUAL "OFF")
    message(STATUS "GPU kernels: off (WARPDNN_CUDA=OFF), a CPU-only library")
else()
    find_program(WARPDNN_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
    if(WARPDNN_NVCC)
        set(WARPDNN_WITH_CUDA 1)
    elseif(WARPDNN_CUDA STREQUAL "ON")
        message(FATAL_ERROR "WARPDNN_CUDA=ON, but there is no nvcc in PATH, in $CUDA_HOME/bin or in "
            "/usr/local/cuda/bin (or pass -DWARPDNN_NVCC=/path/to/nvcc)")
    else()
        message(STATUS "GPU kernels: off, for nvcc was not found; a CPU-only library")
    endif()
endif()

set(nvcc_flags "")
if(WARPDNN_WITH_CUDA)
    execute_process(COMMAND ${WARPDNN_NVCC} --version OUTPUT_VARIABLE nvcc_version
        RESULT_VARIABLE nvcc_result)
    if(NOT nvcc_result EQUAL 0)
        message(FATAL_ERROR "${WARPDNN_NVCC} --version fails: ${nvcc_version}")
    endif()
    string(REGEX REPLACE ".*release ([0-9.]+).*" "\\1" nvcc_version "${nvcc_version}")
    # as the driver counts: 13.0 is 13000
    string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" ignored "${nvcc_version}")
    math(EXPR WARPDNN_CUDA_VERSION "1000 * ${CMAKE_MATCH_1} + 10 * ${CMAKE_MATCH_2}")
    set(nvcc_flags -std=c++17 -O3 -Xptxas -v -DWD_WITH_CUDA=1
        -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
    if("${WARPDNN_CUDA_ARCHS}" STREQUAL "")
        message(FATAL_ERROR "WARPDNN_CUDA_ARCHS is empty: name what nvcc shall compile for, as sm_90a or "
            "compute_90, or build with WARPDNN_CUDA=OFF")
    endif()
    list(REMOVE_DUPLICATES WARPDNN_CUDA_ARCHS)
    foreach(arch IN LISTS WARPDNN_CUDA_ARCHS)
        if(NOT arch MATCHES "^(sm|compute)_([0-9]+[af]?)$")
            message(FATAL_ERROR "WARPDNN_CUDA_ARCHS: '${arch}' is not of the form sm_90a or compute_90")
        endif()
    endforeach()
    # Drivers of newer devices compile PTX for older ones, in which kernels have not what the engines then ask for.
    if(WARPDNN_CUDA_ARCHS MATCHES "compute_[1-8][0-9]([^0-9]|$)" AND NOT WARPDNN_CUDA_ARCHS MATCHES "compute_90")
        message(FATAL_ERROR "WARPDNN_CUDA_ARCHS: PTX for a compute capability below 9.0 needs compute_90 "
            "beside it, or a newer device would run kernels without clusters as if they had them")
    endif()
    # linked into the library, which needs nothing but the C library
    find_library(WARPDNN_LZMA NAMES liblzma.a)
    find_path(WARPDNN_LZMA_INCLUDE lzma.h)
    if(NOT WARPDNN_LZMA OR NOT WARPDNN_LZMA_INCLUDE)
        message(FATAL_ERROR "GPU kernels are packed and unpacked by liblzma.a: install Debian's package "
            "liblzma-dev, or what is like it, or build with WARPDNN_CUDA=OFF")
    endif()
    list(JOIN WARPDNN_CUDA_ARCHS " " archs)
    message(STATUS "GPU kernels: nvcc ${nvcc_version} (${WARPDNN_NVCC}) for ${archs}")
endif()

if(WARPDNN_WITH_CUDA)
    file(GLOB pack_sources CONFIGURE_DEPENDS tools/pack/*.c)
    add_executable(pack_image ${pack_sources})
    set_target_properties(pack_image PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)
    target_compile_definitions(pack_image PRIVATE _GNU_SOURCE=)
    target_include_directories(pack_image PRIVATE ${PROJECT_SOURCE_DIR}/src ${WARPDNN_LZMA_INCLUDE})
    target_link_libraries(pack_image PRIVATE warpdnn_warnings ${WARPDNN_LZMA} Threads::Threads)
endif()

# warpdnn_kernel_flags(<variable> <name>): what nvcc is told beyond the rest, by the file's last word.
function(warpdnn_kernel_flags out name)
    set(flags "")
    if(name MATCHES "_(def|exact)$")  # what the source says, as the C compiler does
        list(APPEND flags --fmad=false)
        if(name MATCHES "_def$")
            list(APPEND flags -DWD_DEFINITION=1)
            if(NOT name MATCHES "^(conv|gemm)_def$")  # last resorts: half the size without unrolled loops
                list(APPEND flags -Xcicc -O1)
            endif()
        endif()
    elseif(name MATCHES "_half$")  # results of half precision: quotients and roots may be a few units off
        list(APPEND flags -prec-div=false -prec-sqrt=false)
    endif()
    set(${out} ${flags} PARENT_SCOPE)
endfunction()

# warpdnn_embed_kernels(<variable>): append the assembler files of all .cu files to <variable>.
function(warpdnn_embed_kernels out)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cu)
    set(dir ${PROJECT_BINARY_DIR}/kernels)
    file(MAKE_DIRECTORY ${dir})
    set(names "")
    set(sources "")
    foreach(kernel IN LISTS kernels)
        get_filename_component(name ${kernel} NAME_WE)
        if(name IN_LIST names)
            message(FATAL_ERROR "Two .cu files are named ${name}.cu; the name makes a symbol, so it "
                "must be unique")
        endif()
        list(APPEND names ${name})
        file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${kernel})
        set(IMAGE_MODULE ${name})
        set(IMAGE_ROWS "")
        set(IMAGE_FILES "")
        set(images "")
        if(WARPDNN_WITH_CUDA)
            warpdnn_kernel_flags(flags ${name})
            foreach(arch IN LISTS WARPDNN_CUDA_ARCHS)
                # Nobody launches kernels of clusters below compute capability 9.0 (those of *_cluster.cu are for blocks alone,
                # too), nor those of *_halves_clusters.cu on any other, for that is where they were measured.
                if(name MATCHES "_clusters$" AND arch MATCHES "_[1-8][0-9][af]?$")
                    continue()
                endif()
                if(name MATCHES "_halves_clusters$" AND arch MATCHES "^sm_" AND NOT arch MATCHES "^sm_90")
                    continue()
                endif()
                set(suffix cubin)
                string(REPLACE "sm_" "compute_" virtual ${arch})
                set(how -cubin -gencode arch=${virtual},code=${arch})
                if(arch STREQUAL virtual)
                    set(suffix ptx)
                    set(how -ptx -arch=${arch})
                endif()
                set(image ${dir}/${name}.${arch}.${suffix})
                set(report ${dir}/${name}.${arch}.ptxas.txt)
                # Machine code comes of the PTX that is there anyway: the same instructions as from the source,
                # which the compiler then reads twice, not three times. So no source may ask for what sm_90a has beyond sm_90: lint
                # refuses the macros for it (tools/lint/files.py), until a kernel needs it and this a rule.
                string(REGEX REPLACE "[af]$" "" base ${virtual})
                set(assembling "")
                if("--fmad=false" IN_LIST flags)
                    set(assembling --fmad=false)
                endif()
                if(arch STREQUAL virtual OR NOT base IN_LIST WARPDNN_CUDA_ARCHS)
                    add_custom_command(OUTPUT ${image} BYPRODUCTS ${report}
                        COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${report}
                            ${WARPDNN_NVCC} ${nvcc_flags} ${flags} ${how} -MD -MF ${image}.d -o ${image}
                            ${kernel}
                        DEPENDS ${kernel} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh
                        DEPFILE ${image}.d
                        COMMENT "Compiling ${shown} for ${arch}" VERBATIM)
                else()
                    add_custom_command(OUTPUT ${image} BYPRODUCTS ${report}
                        COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${report}
                            ${WARPDNN_NVCC} -cubin -arch=${arch} ${assembling} -Xptxas -v -o ${image}
                            ${dir}/${name}.${base}.ptx
                        DEPENDS ${dir}/${name}.${base}.ptx ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh
                        COMMENT "Assembling ${name} for ${arch}" VERBATIM)
                endif()
                # of the PTX of *_halves_clusters.cu comes machine code alone, where there is any
                if(name MATCHES "_halves_clusters$" AND arch STREQUAL virtual
                    AND "${WARPDNN_CUDA_ARCHS}" MATCHES "sm_90")
                    continue()
                endif()
                add_custom_command(OUTPUT ${image}.packed
                    COMMAND pack_image ${image} ${image}.packed
                    DEPENDS ${image} pack_image
                    COMMENT "Packing ${name} for ${arch}" VERBATIM)
                list(APPEND images ${image}.packed)
                string(APPEND IMAGE_ROWS "    .ascii \"${arch}\"\n    .balign 16, 0\n"
                    "    .quad .L${arch} - .Ltable, .L${arch}_end - .L${arch}\n")
                string(APPEND IMAGE_FILES ".L${arch}:\n    .incbin \"${image}.packed\"\n.L${arch}_end:\n")
            endforeach()
            string(APPEND IMAGE_ROWS "    .skip 32\n") # a row without a name ends the table
        endif()
        configure_file(${PROJECT_SOURCE_DIR}/cmake/images.S.in ${dir}/${name}.S @ONLY)
        if(images)
            set_source_files_properties(${dir}/${name}.S PROPERTIES OBJECT_DEPENDS "${images}")
            list(APPEND sources ${images})
        endif()
        list(APPEND sources ${dir}/${name}.S)
    endforeach()
    set(${out} ${${out}} ${sources} PARENT_SCOPE)
endfunction()
