// SPDX-License-Identifier: Apache-2.0 OR MIT
// The Verilated routers behind one C interface, for src/model.rs. Pins has the layout of `model::Pins`.
#include <cstdint>
#include <cstring>

#include "Rcp256.h"
#include "Rcp512.h"
#include "Rcp64.h"
#include "Vcp512.h"
#include "Vcp64.h"
#include "Xcp512.h"
#include "Xcp64.h"

double sc_time_stamp() { return 0; }

struct Pins {
	uint8_t s_data[64], m_data[64];
	uint64_t s_keep, m_keep;
	uint32_t wdata, rdata, queue_bytes;
	uint8_t awaddr, araddr;
	uint8_t rst, s_valid, s_last, s_ready, m_valid, m_last, m_ready;
	uint8_t write, written, read, has_read, slot_over;
};

struct Model {
	virtual ~Model() = default;
	virtual void cycle(Pins &p) = 0;
};

template <class V> struct Of : Model {
	V v;

	void cycle(Pins &p) override
	{
		v.rst = p.rst;
		v.s_axis_tvalid = p.s_valid;
		v.s_axis_tlast = p.s_last;
		std::memcpy(&v.s_axis_tdata, p.s_data, sizeof(v.s_axis_tdata));
		std::memcpy(&v.s_axis_tkeep, &p.s_keep, sizeof(v.s_axis_tkeep));
		v.m_axis_tready = p.m_ready;
		v.s_axil_awvalid = v.s_axil_wvalid = p.write;
		v.s_axil_awaddr = p.awaddr;
		v.s_axil_wdata = p.wdata;
		v.s_axil_bready = 1;
		v.s_axil_arvalid = p.read;
		v.s_axil_araddr = p.araddr;
		v.s_axil_rready = 1;
		v.queue_bytes = p.queue_bytes;
		v.clk = 0;
		v.eval();
		p.s_ready = v.s_axis_tready;
		p.m_valid = v.m_axis_tvalid;
		p.m_last = v.m_axis_tlast;
		std::memcpy(p.m_data, &v.m_axis_tdata, sizeof(v.m_axis_tdata));
		p.m_keep = v.m_axis_tkeep;
		p.written = v.s_axil_awready;
		p.has_read = v.s_axil_rvalid;
		p.rdata = v.s_axil_rdata;
		p.slot_over = v.slot_over;
		v.clk = 1;
		v.eval();
	}
};

extern "C" Model *fs_model_new(unsigned law, unsigned width)
{
	switch (law << 16 | width) {
	case 1 << 16 | 64: return new Of<Rcp64>;
	case 1 << 16 | 256: return new Of<Rcp256>;
	case 1 << 16 | 512: return new Of<Rcp512>;
	case 2 << 16 | 64: return new Of<Xcp64>;
	case 2 << 16 | 512: return new Of<Xcp512>;
	case 3 << 16 | 64: return new Of<Vcp64>;
	case 3 << 16 | 512: return new Of<Vcp512>;
	}
	return nullptr;
}

extern "C" void fs_model_cycle(Model *model, Pins *pins) { model->cycle(*pins); }
extern "C" void fs_model_free(Model *model) { delete model; }
