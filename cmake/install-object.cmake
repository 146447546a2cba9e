# install-object.cmake: installs the file `object` as libgpushim.so in `folder` of the prefix, by rename: every program
# of the machine may have the old one mapped, or be loading it. Run by `cmake --install` and by cpack.
set(destination "${CMAKE_INSTALL_PREFIX}/${folder}")
set(here "$ENV{DESTDIR}${destination}")
file(INSTALL "${object}" DESTINATION "${destination}" RENAME libgpushim.so.new
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND "${strip}" --strip-unneeded "${here}/libgpushim.so.new" COMMAND_ERROR_IS_FATAL ANY)
endif()
file(RENAME "${here}/libgpushim.so.new" "${here}/libgpushim.so")
