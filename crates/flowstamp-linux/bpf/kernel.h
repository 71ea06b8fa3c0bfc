/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Headers that all programs include. Loading relocates offsets of kernel types (CO-RE). */
#ifndef FLOWSTAMP_KERNEL_H
#define FLOWSTAMP_KERNEL_H

#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#endif
