# SPDX-License-Identifier: Apache-2.0
#
# GPU kernels: every src/**/X.cu becomes one fatbin, embedded in the library by the assembler between
# the hidden symbols wd_fatbin_X and wd_fatbin_X_end. nvcc is a plain command here, so that the
# project needs no CUDA toolkit: without nvcc the same symbols exist with no bytes between them, and
# WD_WITH_CUDA is 0. Beside each fatbin lies X.ptxas.txt, the compiler's report on registers, shared
# memory and spills.

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
    set(nvcc_flags -fatbin -std=c++17 -O3 -Xptxas -v -DWD_WITH_CUDA=1
        -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
    foreach(arch IN LISTS WARPDNN_CUDA_ARCHS)
        if(NOT arch MATCHES "^(sm|compute)_([0-9]+[af]?)$")
            message(FATAL_ERROR "WARPDNN_CUDA_ARCHS: '${arch}' is not of the form sm_90a or compute_90")
        endif()
        list(APPEND nvcc_flags -gencode arch=compute_${CMAKE_MATCH_2},code=${arch})
    endforeach()
    # Drivers of CUDA 12.0 to 12.3 cannot unpack it, and those of 13 all can.
    if(nvcc_version VERSION_GREATER_EQUAL 13.0)
        list(APPEND nvcc_flags --compress-mode=size)
    endif()
    list(JOIN WARPDNN_CUDA_ARCHS " " archs)
    message(STATUS "GPU kernels: nvcc ${nvcc_version} (${WARPDNN_NVCC}) for ${archs}")
endif()

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
        set(FATBIN_NAME ${name})
        set(FATBIN_INCLUDE "")
        if(WARPDNN_WITH_CUDA)
            set(fatbin ${dir}/${name}.fatbin)
            set(flags ${nvcc_flags})
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
            add_custom_command(OUTPUT ${fatbin} BYPRODUCTS ${dir}/${name}.ptxas.txt
                COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${dir}/${name}.ptxas.txt
                    ${WARPDNN_NVCC} ${flags} -MD -MF ${fatbin}.d -o ${fatbin} ${kernel}
                DEPENDS ${kernel} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh
                DEPFILE ${fatbin}.d
                COMMENT "Compiling ${shown}" VERBATIM)
            set(FATBIN_INCLUDE "    .incbin \"${fatbin}\"")
        endif()
        configure_file(${PROJECT_SOURCE_DIR}/cmake/fatbin.S.in ${dir}/${name}.S @ONLY)
        if(WARPDNN_WITH_CUDA)
            set_source_files_properties(${dir}/${name}.S PROPERTIES OBJECT_DEPENDS ${fatbin})
            list(APPEND sources ${fatbin})
        endif()
        list(APPEND sources ${dir}/${name}.S)
    endforeach()
    set(${out} ${${out}} ${sources} PARENT_SCOPE)
endfunction()
