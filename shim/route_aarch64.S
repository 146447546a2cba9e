/* route_aarch64.S -- the exported dlsym and dlvsym: ask the filter, then jump or return.
 * The jump keeps the caller's return address, by which the C library knows who asks. x16 is the
 * register a branch may take under BTI; x30 stays unsigned between the store and the load. */
    .text

    .globl dlsym
    .protected dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint #34                        /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    mov x29, sp
    mov x2, x30                     /* the caller */
    bl route_dlsym
    mov x16, x0
    mov x17, x1
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    cbz x16, 1f
    br x16
1:  mov x0, x17
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

    .globl dlvsym
    .protected dlvsym
    .type dlvsym, %function
dlvsym:
    .cfi_startproc
    hint #34                        /* bti c */
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x29, sp
    mov x3, x30                     /* the caller */
    bl route_dlvsym
    mov x16, x0
    mov x17, x1
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    cbz x16, 1f
    br x16
1:  mov x0, x17
    ret
    .cfi_endproc
    .size dlvsym, . - dlvsym

    .section .note.GNU-stack, "", %progbits
