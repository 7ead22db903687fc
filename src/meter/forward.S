// SPDX-License-Identifier: Apache-2.0
// The exported names. Each is one indirect jump through its slot of a table. A slot begins at the `lazy` stub,
// which saves every argument register, asks mete_resolve(slot) for the target of the name, and jumps there; from then
// on the slot holds a hook of ours or the driver's own function, and a call costs the one jump.
// The tables are in the order of the .def files; mete_resolve() turns a slot's address into an index.

#if defined(__x86_64__)

.macro forward table, name
  .pushsection .data.rel.\table, "aw", @progbits
  .balign 8
.Lslot_\name:
  .quad .Llazy_\name
  .popsection
  .globl \name
  .type \name, @function
  .balign 16
\name:
  endbr64
  jmp *.Lslot_\name(%rip)
  .size \name, . - \name
.Llazy_\name:
  endbr64
  leaq .Lslot_\name(%rip), %r11
  jmp .Lresolve
.endm

  .text
  .type .Lresolve, @function
.Lresolve:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  subq $192, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movups %xmm0, 64(%rsp)
  movups %xmm1, 80(%rsp)
  movups %xmm2, 96(%rsp)
  movups %xmm3, 112(%rsp)
  movups %xmm4, 128(%rsp)
  movups %xmm5, 144(%rsp)
  movups %xmm6, 160(%rsp)
  movups %xmm7, 176(%rsp)
  movq %r11, %rdi
  call mete_resolve
  movq %rax, %r11
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movq 48(%rsp), %rax
  movups 64(%rsp), %xmm0
  movups 80(%rsp), %xmm1
  movups 96(%rsp), %xmm2
  movups 112(%rsp), %xmm3
  movups 128(%rsp), %xmm4
  movups 144(%rsp), %xmm5
  movups 160(%rsp), %xmm6
  movups 176(%rsp), %xmm7
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
  .size .Lresolve, . - .Lresolve

#elif defined(__aarch64__)

.macro forward table, name
  .pushsection .data.rel.\table, "aw", @progbits
  .balign 8
.Lslot_\name:
  .xword .Llazy_\name
  .popsection
  .globl \name
  .type \name, %function
  .balign 16
\name:
  bti c
  adrp x16, .Lslot_\name
  ldr x16, [x16, #:lo12:.Lslot_\name]
  br x16
  .size \name, . - \name
.Llazy_\name:
  bti j
  adrp x17, .Lslot_\name
  add x17, x17, #:lo12:.Lslot_\name
  b .Lresolve
.endm

  .text
  .arch armv8.5-a
  .type .Lresolve, %function
.Lresolve:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset x29, -224
  .cfi_offset x30, -216
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov x0, x17
  bl mete_resolve
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp q0, q1, [sp, #96]
  ldp q2, q3, [sp, #128]
  ldp q4, q5, [sp, #160]
  ldp q6, q7, [sp, #192]
  ldp x29, x30, [sp], #224
  .cfi_restore x29
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
  .size .Lresolve, . - .Lresolve

#else
#error "no forwarders for this machine yet"
#endif

.macro table_start label, section
  .pushsection .data.rel.\section, "aw", @progbits
  .balign 8
  .globl \label
  .hidden \label
\label:
  .popsection
.endm

  table_start mete_cuda_targets, mete_cuda
#define CUDA_SYMBOL(name) forward mete_cuda, name;
#include "abi/cuda_symbols.def"

  table_start mete_nvml_targets, mete_nvml
#define NVML_SYMBOL(name) forward mete_nvml, name;
#include "abi/nvml_symbols.def"
#undef NVML_SYMBOL

  .section .note.GNU-stack, "", %progbits
