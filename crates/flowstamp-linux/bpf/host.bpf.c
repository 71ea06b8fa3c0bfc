// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end host's programs: congestion controls that follow the routers' feedback, the option in every packet, the
 * option in acks whose option space SACK fills, and VCP's code in the IP header. All programs share one state per
 * connection, stored with its socket.
 */
#include "host_listeners.h"
#include "host_option.h"
#include "host_sender.h"
#include "host_squeezed.h"
#include "host_code.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("sockops")
int fs_options(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		fs_connect(ops);
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		fs_listen_in(ops);
		FS_KEEP_SYN(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		fs_established(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		fs_reserve(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		fs_write(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		fs_parse(ops);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		fs_timeout(ops);
		break;
	}
	return 1;
}

SEC("tc")
int fs_egress(struct __sk_buff *skb)
{
	fs_unsqueeze(skb);
	fs_write_code(skb);
	return -1; /* on to the next program */
}

SEC("iter/tcp")
int fs_listeners(struct bpf_iter__tcp *iteration)
{
	fs_tell_listener(iteration->sk_common);
	return 0;
}

/* Only cong_control changes the window. A flow that leaves keeps the threshold that fs_leave() has set. */
SEC("struct_ops")
__u32 BPF_PROG(fs_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops")
__u32 BPF_PROG(fs_undo_cwnd, struct sock *sk)
{
	fs_undo(sk);
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(fs_set_state, struct sock *sk, __u8 state)
{
	fs_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(fs_cwnd_event, struct sock *sk, int event)
{
	fs_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(fs_release, struct sock *sk)
{
	fs_end(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_rcp_init, struct sock *sk)
{
	fs_rcp_begin(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_rcp_cong_control, struct sock *sk)
{
	fs_rcp_control(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_xcp_init, struct sock *sk)
{
	fs_xcp_begin(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_xcp_cong_control, struct sock *sk)
{
	fs_xcp_control(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_vcp_init, struct sock *sk)
{
	fs_vcp_begin(sk);
}

SEC("struct_ops")
void BPF_PROG(fs_vcp_cong_control, struct sock *sk)
{
	fs_vcp_control(sk);
}

/* The loader sets the names. */
SEC(".struct_ops.link")
struct tcp_congestion_ops rcp = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = (void *)fs_ssthresh,
	.set_state = (void *)fs_set_state,
	.cwnd_event = (void *)fs_cwnd_event,
	.cong_control = (void *)fs_rcp_cong_control,
	.undo_cwnd = (void *)fs_undo_cwnd,
	.init = (void *)fs_rcp_init,
	.release = (void *)fs_release,
	.name = "flowstamp_rcp",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops xcp = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = (void *)fs_ssthresh,
	.set_state = (void *)fs_set_state,
	.cwnd_event = (void *)fs_cwnd_event,
	.cong_control = (void *)fs_xcp_cong_control,
	.undo_cwnd = (void *)fs_undo_cwnd,
	.init = (void *)fs_xcp_init,
	.release = (void *)fs_release,
	.name = "flowstamp_xcp",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops vcp = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = (void *)fs_ssthresh,
	.set_state = (void *)fs_set_state,
	.cwnd_event = (void *)fs_cwnd_event,
	.cong_control = (void *)fs_vcp_cong_control,
	.undo_cwnd = (void *)fs_undo_cwnd,
	.init = (void *)fs_vcp_init,
	.release = (void *)fs_release,
	.name = "flowstamp_vcp",
};
