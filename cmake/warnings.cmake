# What every object of the project is compiled with: the target `gpushim_flags`.
add_library(gpushim_flags INTERFACE)
target_compile_options(gpushim_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
        -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2 -Wcast-qual -Wwrite-strings>)
if(GPUSHIM_WERROR)
    target_compile_options(gpushim_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(GPUSHIM_SANITIZE)
    target_compile_options(gpushim_flags INTERFACE -fsanitize=${GPUSHIM_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(gpushim_flags INTERFACE -fsanitize=${GPUSHIM_SANITIZE})
endif()
