# runtimes.cmake: NVIDIA's CUDA runtimes as targets, where they are to be had.
#
# For each major version M of ../runtimes.txt: cudart_M and cudart_M_static, imported targets with the headers,
# from fetch-runtimes.sh's cache, else from a toolkit of that version on the machine. GPUSHIM_RUNTIMES lists the
# majors, GPUSHIM_RUNTIME_PACKAGE_M names the package that would bring a missing one.
include_guard(GLOBAL)

set(GPUSHIM_RUNTIMES_DIR ${CMAKE_CURRENT_LIST_DIR})
execute_process(COMMAND ${GPUSHIM_RUNTIMES_DIR}/../fetch-runtimes.sh --where
    OUTPUT_VARIABLE cache OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(GPUSHIM_RUNTIMES_CACHE ${cache} CACHE INTERNAL "")

# gpushim_runtime_target(NAME FILE INCLUDE): an imported library of that name.
function(gpushim_runtime_target name file include)
    if(NOT EXISTS "${file}")
        return()
    endif()
    add_library(${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${file}"
        INTERFACE_INCLUDE_DIRECTORIES "${GPUSHIM_RUNTIMES_DIR}/include;${include}")
endfunction()

set(majors "")
file(STRINGS ${GPUSHIM_RUNTIMES_DIR}/../runtimes.txt pins REGEX "^nvidia-cuda-runtime")
foreach(pin IN LISTS pins)
    string(REGEX MATCH "^(.*)==([0-9]+)" matched "${pin}")
    set(major ${CMAKE_MATCH_2})
    list(APPEND majors ${major})
    set(GPUSHIM_RUNTIME_PACKAGE_${major} ${pin} CACHE INTERNAL "")

    string(REPLACE "==" "-" folder "${pin}")
    file(GLOB include ${GPUSHIM_RUNTIMES_CACHE}/${folder}/nvidia/*/include)
    file(GLOB shared ${GPUSHIM_RUNTIMES_CACHE}/${folder}/nvidia/*/lib/libcudart.so.*)
    file(GLOB static ${GPUSHIM_RUNTIMES_CACHE}/${folder}/nvidia/*/lib/libcudart_static.a)
    foreach(toolkit IN ITEMS $ENV{CUDA_HOME} /usr/local/cuda)
        if(NOT shared AND EXISTS ${toolkit}/include/cuda_runtime_api.h)
            file(STRINGS ${toolkit}/include/cuda_runtime_api.h version REGEX "define CUDART_VERSION +${major}0")
            if(version)
                set(include ${toolkit}/include)
                file(GLOB shared ${toolkit}/lib64/libcudart.so.${major}*)
                list(SUBLIST shared 0 1 shared)
                set(static ${toolkit}/lib64/libcudart_static.a)
            endif()
        endif()
    endforeach()
    gpushim_runtime_target(cudart_${major} "${shared}" "${include}")
    gpushim_runtime_target(cudart_${major}_static "${static}" "${include}")
    if(TARGET cudart_${major}_static)
        set_property(TARGET cudart_${major}_static PROPERTY
            INTERFACE_LINK_LIBRARIES ${CMAKE_DL_LIBS} pthread rt)
    endif()
endforeach()
set(GPUSHIM_RUNTIMES ${majors} CACHE INTERNAL "") # for every folder that includes this
