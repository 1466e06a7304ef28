/*
 * A classic-BPF interpreter for seccomp filters (linux/seccomp.h, bpf(4)), so
 * that a filter's verdict can be tested without loading it.
 */
#ifndef BPF_EVAL_H
#define BPF_EVAL_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <stdint.h>
#include <string.h>

enum { BPF_EVAL_BROKEN = 1 }; /* no seccomp action has this value */

/* The action for this call, or BPF_EVAL_BROKEN for what the kernel's checker
 * would refuse (unknown instruction, jump or load out of bounds). */
static inline uint32_t
bpf_eval(const struct sock_filter *f, size_t n, const struct seccomp_data *d)
{
	uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {0}, k, operand;

	for (size_t pc = 0; pc < n; pc++) {
		k = f[pc].k;
		operand = BPF_SRC(f[pc].code) == BPF_X ? x : k;
		switch (f[pc].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (k % 4 != 0 || k > sizeof(*d) - 4)
				return BPF_EVAL_BROKEN;
			memcpy(&a, (const uint8_t *)d + k, 4);
			break;
		case BPF_LD | BPF_IMM:
			a = k;
			break;
		case BPF_LDX | BPF_IMM:
			x = k;
			break;
		case BPF_LD | BPF_MEM:
			if (k >= BPF_MEMWORDS)
				return BPF_EVAL_BROKEN;
			a = mem[k];
			break;
		case BPF_ST:
			if (k >= BPF_MEMWORDS)
				return BPF_EVAL_BROKEN;
			mem[k] = a;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
		case BPF_ALU | BPF_AND | BPF_X:
			a &= operand;
			break;
		case BPF_ALU | BPF_OR | BPF_K:
		case BPF_ALU | BPF_OR | BPF_X:
			a |= operand;
			break;
		case BPF_MISC | BPF_TAX:
			x = a;
			break;
		case BPF_MISC | BPF_TXA:
			a = x;
			break;
		case BPF_JMP | BPF_JA:
			pc += k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JEQ | BPF_X:
			pc += a == operand ? f[pc].jt : f[pc].jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_X:
			pc += a > operand ? f[pc].jt : f[pc].jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_X:
			pc += a >= operand ? f[pc].jt : f[pc].jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_X:
			pc += (a & operand) != 0 ? f[pc].jt : f[pc].jf;
			break;
		case BPF_RET | BPF_K:
			return k;
		case BPF_RET | BPF_A:
			return a;
		default:
			return BPF_EVAL_BROKEN;
		}
	}
	return BPF_EVAL_BROKEN;
}

#endif
