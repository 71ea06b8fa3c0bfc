// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel.h"
#include "option.h"
char LICENSE[] SEC("license") = "Dual BSD/GPL";
SEC("sockops")
int fs_sockops(struct bpf_sock_ops *ops) { return 1; }
