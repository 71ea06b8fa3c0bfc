// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel.h"
#include "option.h"
char LICENSE[] SEC("license") = "Dual BSD/GPL";
SEC("tc")
int fs_router(struct __sk_buff *skb) { return -1; }
