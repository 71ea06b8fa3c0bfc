-- Wireshark dissector of three congestion headers as flowstamp writes them: XCP's (draft-falk-xcp-spec-03, version 3),
-- RCP's (Dukkipati 2007, section 6.1.1) and PCP's (Katabi and Handley 2001, section 3.3).
--
--   IPv4 or IPv6, protocol 253 | XCP, 20 bytes | transport named by the header's first byte
--   IPv4 or IPv6, protocol 254 | RCP, 12 bytes | transport named by the header's last byte but one
--   IPv4 or IPv6, protocol 251 | PCP, 16 bytes | transport named by the header's third byte
--
-- Use:  tshark -X lua_script:flowstamp.lua -r run.pcapng      (Wireshark and tshark 4.0 and later)
--
-- Times are seconds and rates are bytes/s, so "xcp.rtt > 0.1" and "rcp.bottleneck_rate < 125000" are display filters.
-- What opens and ends a flow is told by TCP: "tcp.flags.syn == 1", "tcp.flags.fin == 1".

local HEADER_LEN = 20
local VERSION = 3
local IP_PROTOCOL = 253
local STEPS_PER_SECOND = 2 ^ 28

local xcp = Proto("xcp", "Explicit Control Protocol")

local formats = { [1] = "Standard", [2] = "Minimal" }
local protocols = { [1] = "ICMP", [6] = "TCP", [17] = "UDP", [58] = "ICMPv6", [132] = "SCTP" }

local f = {
    protocol = ProtoField.uint8("xcp.protocol", "Protocol", base.DEC, protocols),
    length = ProtoField.uint8("xcp.length", "Header length", base.DEC),
    version = ProtoField.uint8("xcp.version", "Version", base.DEC, nil, 0xf0),
    format = ProtoField.uint8("xcp.format", "Format", base.DEC, formats, 0x0f),
    unused = ProtoField.uint8("xcp.unused", "Unused", base.HEX),
    x = ProtoField.double("xcp.x", "X (time between packets)"),
    rtt = ProtoField.double("xcp.rtt", "RTT"),
    reverse_feedback = ProtoField.int32("xcp.reverse_feedback", "Reverse feedback", base.DEC),
    delta_throughput = ProtoField.int32("xcp.delta_throughput", "Delta throughput", base.DEC),
}
xcp.fields = { f.protocol, f.length, f.version, f.format, f.unused, f.x, f.rtt, f.reverse_feedback, f.delta_throughput }

local e = {
    truncated = ProtoExpert.new("xcp.truncated", "XCP header truncated", expert.group.MALFORMED, expert.severity.WARN),
    length = ProtoExpert.new("xcp.bad_length", "bad XCP length", expert.group.PROTOCOL, expert.severity.WARN),
    version = ProtoExpert.new("xcp.bad_version", "unknown XCP version", expert.group.PROTOCOL, expert.severity.WARN),
    format = ProtoExpert.new("xcp.bad_format", "unknown XCP format", expert.group.PROTOCOL, expert.severity.WARN),
}
xcp.experts = { e.truncated, e.length, e.version, e.format }

local ip_protocols = DissectorTable.get("ip.proto")

-- What follows the header, as a Tvb that knows its length on the wire.
--
-- A Tvb made from a range forgets how much was on the wire and was not captured (true of every version so far). TCP
-- would then take a segment whose payload was not captured for an empty one: wrong tcp.len, wrong next sequence number,
-- "bad" checksum. So the missing bytes are put back as zeros, which is what flowstamp's payload is. In a capture of
-- other origin the checksum of such a cut segment is reported as bad, if checksums are checked at all.
local function rest_of(tvb, header_len)
    local missing = tvb:reported_len() - tvb:len()
    if missing <= 0 then
        return tvb:range(header_len):tvb()
    end
    local bytes = tvb:range(header_len):bytes()
    bytes:set_size(bytes:len() + missing)
    return bytes:tvb("Payload not captured, shown as zeros")
end

function xcp.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "XCP"
    local captured = tvb:len()
    local subtree = tree:add(xcp, tvb:range(0, math.min(captured, HEADER_LEN)))

    -- Each field is shown if it was captured; the reader of a damaged file then sees as much as there is.
    local function have(offset, len)
        return captured >= offset + len
    end

    local protocol
    local header_len = HEADER_LEN
    if have(0, 1) then
        protocol = tvb:range(0, 1):uint()
        subtree:add(f.protocol, tvb:range(0, 1))
    end
    if have(1, 1) then
        local length = tvb:range(1, 1):uint()
        local item = subtree:add(f.length, tvb:range(1, 1)):append_text(" bytes")
        if length ~= HEADER_LEN then
            item:add_proto_expert_info(e.length, "bad XCP length " .. length .. ": must be " .. HEADER_LEN)
            header_len = math.max(length, HEADER_LEN)
        end
    end
    if have(2, 1) then
        local version = tvb:range(2, 1):bitfield(0, 4)
        local format = tvb:range(2, 1):bitfield(4, 4)
        local version_item = subtree:add(f.version, tvb:range(2, 1))
        local format_item = subtree:add(f.format, tvb:range(2, 1))
        if version ~= VERSION then
            version_item:add_proto_expert_info(e.version, "unknown XCP version " .. version .. ": must be " .. VERSION)
        end
        if not formats[format] then
            format_item:add_proto_expert_info(e.format,
                "unknown XCP format " .. format .. ": must be 1 (standard) or 2 (minimal)")
        end
    end
    if have(3, 1) then
        subtree:add(f.unused, tvb:range(3, 1))
    end
    if have(4, 4) then
        subtree:add(f.x, tvb:range(4, 4), tvb:range(4, 4):uint() / STEPS_PER_SECOND):append_text(" s")
    end
    if have(8, 4) then
        local rtt = tvb:range(8, 4):uint() / STEPS_PER_SECOND
        subtree:add(f.rtt, tvb:range(8, 4), rtt):append_text(rtt == 0 and " s (unknown)" or " s")
    end
    if have(12, 4) then
        subtree:add(f.reverse_feedback, tvb:range(12, 4)):append_text(" bytes/s")
    end
    if have(16, 4) then
        subtree:add(f.delta_throughput, tvb:range(16, 4)):append_text(" bytes/s")
    end

    if tvb:reported_len() < HEADER_LEN then
        subtree:add_proto_expert_info(e.truncated,
            "XCP header truncated: " .. tvb:reported_len() .. " bytes, must be " .. HEADER_LEN)
        return captured
    end
    if captured > header_len then
        ip_protocols:try(protocol, rest_of(tvb, header_len), pinfo, tree)
    end
    return captured
end

-- IPv6 looks its next headers up in the same table.
ip_protocols:add(IP_PROTOCOL, xcp)

local RCP_HEADER_LEN = 12
local RCP_IP_PROTOCOL = 254
local RTT_UNKNOWN = 0xffff

local rcp = Proto("rcp", "Rate Control Protocol")

local r = {
    bottleneck_rate = ProtoField.double("rcp.bottleneck_rate", "Bottleneck rate"),
    reverse_rate = ProtoField.double("rcp.reverse_bottleneck_rate", "Reverse bottleneck rate"),
    rtt = ProtoField.double("rcp.rtt", "RTT"),
    protocol = ProtoField.uint8("rcp.protocol", "Protocol", base.DEC, protocols),
    weight = ProtoField.double("rcp.weight", "Weight"),
}
rcp.fields = { r.bottleneck_rate, r.reverse_rate, r.rtt, r.protocol, r.weight }

local rcp_truncated =
    ProtoExpert.new("rcp.truncated", "RCP header truncated", expert.group.MALFORMED, expert.severity.WARN)
rcp.experts = { rcp_truncated }

function rcp.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "RCP"
    local captured = tvb:len()
    local subtree = tree:add(rcp, tvb:range(0, math.min(captured, RCP_HEADER_LEN)))

    -- In the header rates are bytes/ms.
    local function add_rate(field, offset, none)
        if captured >= offset + 4 then
            local rate = tvb:range(offset, 4):uint() * 1000
            subtree:add(field, tvb:range(offset, 4), rate):append_text(rate == 0 and " (" .. none .. ")" or " bytes/s")
        end
    end
    add_rate(r.bottleneck_rate, 0, "as much as there is")
    add_rate(r.reverse_rate, 4, "nothing to return")
    if captured >= 10 then
        local rtt = tvb:range(8, 2):uint()
        if rtt == RTT_UNKNOWN then
            subtree:add(tvb:range(8, 2), "RTT: unknown")
        else
            subtree:add(r.rtt, tvb:range(8, 2), rtt / 1000):append_text(" s")
        end
    end
    if captured >= 11 then
        subtree:add(r.protocol, tvb:range(10, 1))
    end
    if captured >= 12 then
        local code = tvb:range(11, 1):uint()
        subtree:add(r.weight, tvb:range(11, 1), (1 + code % 16 / 16) * 2 ^ math.floor(code / 16))
    end

    if tvb:reported_len() < RCP_HEADER_LEN then
        subtree:add_proto_expert_info(rcp_truncated,
            "RCP header truncated: " .. tvb:reported_len() .. " bytes, must be " .. RCP_HEADER_LEN)
        return captured
    end
    if captured > RCP_HEADER_LEN then
        ip_protocols:try(tvb:range(10, 1):uint(), rest_of(tvb, RCP_HEADER_LEN), pinfo, tree)
    end
    return captured
end

ip_protocols:add(RCP_IP_PROTOCOL, rcp)

local PCP_HEADER_LEN = 16
local PCP_IP_PROTOCOL = 251

-- Named after its first word: Wireshark has a "pcp", which is another.
local pcp = Proto("precise", "Precise-feedback Congestion-control Protocol")

local p = {
    ack = ProtoField.bool("precise.ack", "H_A (acknowledgement)", 8, nil, 0x80),
    b1 = ProtoField.bool("precise.b1", "H_B1 (bottleneck on the path)", 8, nil, 0x40),
    b2 = ProtoField.bool("precise.b2", "H_B2 (bottleneck in the last round trip)", 8, nil, 0x20),
    ptl = ProtoField.uint8("precise.ptl", "PTL", base.DEC),
    protocol = ProtoField.uint8("precise.protocol", "Protocol", base.DEC, protocols),
    unused = ProtoField.uint8("precise.unused", "Unused", base.HEX),
    cwnd = ProtoField.uint32("precise.cwnd", "H_cwnd", base.DEC),
    rtt = ProtoField.double("precise.rtt", "H_rtt"),
    feedback = ProtoField.int32("precise.feedback", "H_feedback", base.DEC),
}
pcp.fields = { p.ack, p.b1, p.b2, p.ptl, p.protocol, p.unused, p.cwnd, p.rtt, p.feedback }

local pcp_truncated =
    ProtoExpert.new("precise.truncated", "PCP header truncated", expert.group.MALFORMED, expert.severity.WARN)
pcp.experts = { pcp_truncated }

function pcp.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "PCP"
    local captured = tvb:len()
    local subtree = tree:add(pcp, tvb:range(0, math.min(captured, PCP_HEADER_LEN)))

    if captured >= 1 then
        subtree:add(p.ack, tvb:range(0, 1))
        subtree:add(p.b1, tvb:range(0, 1))
        subtree:add(p.b2, tvb:range(0, 1))
    end
    for at, field in ipairs({ p.ptl, p.protocol, p.unused }) do
        if captured > at then
            subtree:add(field, tvb:range(at, 1))
        end
    end
    if captured >= 8 then
        subtree:add(p.cwnd, tvb:range(4, 4)):append_text(" bytes")
    end
    if captured >= 12 then
        local rtt = tvb:range(8, 4):uint() / STEPS_PER_SECOND
        subtree:add(p.rtt, tvb:range(8, 4), rtt):append_text(rtt == 0 and " s (first packet)" or " s")
    end
    if captured >= 16 then
        subtree:add(p.feedback, tvb:range(12, 4)):append_text(" bytes")
    end

    if tvb:reported_len() < PCP_HEADER_LEN then
        subtree:add_proto_expert_info(pcp_truncated,
            "PCP header truncated: " .. tvb:reported_len() .. " bytes, must be " .. PCP_HEADER_LEN)
        return captured
    end
    if captured > PCP_HEADER_LEN then
        ip_protocols:try(tvb:range(2, 1):uint(), rest_of(tvb, PCP_HEADER_LEN), pinfo, tree)
    end
    return captured
end

ip_protocols:add(PCP_IP_PROTOCOL, pcp)
