/* route_x86_64.S -- the exported dlsym and dlvsym: ask the filter, then jump or return.
 * The jump keeps the caller's return address, by which the C library knows who asks. */
    .text

    .globl dlsym
    .protected dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rdx              /* the caller */
    call route_dlsym
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jz 1f
    jmp *%rax
1:  mov %rdx, %rax
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

    .globl dlvsym
    .protected dlvsym
    .type dlvsym, @function
dlvsym:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rcx              /* the caller */
    call route_dlvsym
    mov %rdx, %rcx                  /* the result, out of the way of the third argument */
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jz 1f
    jmp *%rax
1:  mov %rcx, %rax
    ret
    .cfi_endproc
    .size dlvsym, . - dlvsym

    .section .note.GNU-stack, "", @progbits
