# What `cmake --install` puts where. A build with sanitizers has nothing to install: it would end every program.
if(GPUSHIM_SANITIZE)
    return()
endif()

# The folder that ld.so means by $LIB, whatever the prefix; that of 32-bit programs lies beside it.
if(CMAKE_LIBRARY_ARCHITECTURE)
    set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "what ld.so means by $LIB")
    set(libdir_i386 lib/i386-linux-gnu)
else()
    set(libdir_i386 lib)
endif()
include(GNUInstallDirs)

# install_object(OBJECT FOLDER): see install-object.cmake.
function(install_object object folder)
    install(CODE "set(object \"${object}\")\nset(folder \"${folder}\")\nset(strip \"${CMAKE_STRIP}\")")
    install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install-object.cmake)
endfunction()

install_object("$<TARGET_FILE:gpushim>" ${CMAKE_INSTALL_LIBDIR})
if(TARGET gpushim_stub)
    get_target_property(stub gpushim_stub OBJECT)
    install_object(${stub} ${libdir_i386})
endif()
install(PROGRAMS packaging/gpushim-site DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(FILES docs/gpushim.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(FILES docs/gpushim.conf.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES docs/gpushim-site.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES gpushim.conf.example README.md SECURITY.md CHANGELOG.md LICENSE packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
