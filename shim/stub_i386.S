/* stub_i386.S -- the object for the 32-bit programs of a machine that is preloaded as a whole: it does nothing.
 *
 * There /etc/ld.so.preload names /usr/$LIB/libgpushim.so, and $LIB is another folder for each class of programs. Where nothing
 * lies there, ld.so complains at every exec. There is no CUDA for 32-bit programs that a policy could be about.
 * Assembly, so that no 32-bit C library is needed to build it. */
    .section .note.GNU-stack, "", %progbits
