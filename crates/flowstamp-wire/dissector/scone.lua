
-- SCONE (draft-ietf-scone-protocol): throughput advice at the head of QUIC datagrams. Rates are bits/s here, as in the draft, so
-- that "scone.rate < 5e6" is a display filter. The packets behind it go to Wireshark's dissector of QUIC.
--
--   0  11, signal's high 6 bits   1  version 0x6f7dc0fd, whose top bit is the signal's low bit   5  DCID length, DCID   SCID length, SCID
--
-- "scone.indication" is the end of a client's first datagrams, 0xc8 0x13: it supports SCONE.

local SCONE_VERSION, SCONE_UNKNOWN, SCONE_MIN_LEN = 0x6f7dc0fd, 127, 7
local SCONE_INDICATION, SCONE_INITIAL_LEN = 0xc813, 1200

local scone = Proto("scone", "SCONE throughput advice")
local c = {
    signal = ProtoField.uint8("scone.signal", "Rate signal", base.DEC),
    rate = ProtoField.double("scone.rate", "Rate"),
    version = ProtoField.uint32("scone.version", "Version", base.HEX),
    dcid = ProtoField.bytes("scone.dcid", "Destination connection ID"),
    scid = ProtoField.bytes("scone.scid", "Source connection ID"),
}
scone.fields = { c.signal, c.rate, c.version, c.dcid, c.scid }
local scone_alone = ProtoExpert.new("scone.alone", "no QUIC packet behind SCONE's", expert.group.PROTOCOL, expert.severity.WARN)
scone.experts = { scone_alone }

local quic = Dissector.get("quic")

-- Lua of Wireshark 4.0 has no operators for bits.
local function scone_signal(tvb)
    local high_range = tvb(1, 4):uint() >= 0x80000000
    return tvb(0, 1):uint() % 64 * 2 + (high_range and 1 or 0)
end

-- Length of the SCONE packet at the start, or nil.
local function scone_length(tvb)
    local len = tvb:captured_len()
    if len < SCONE_MIN_LEN or tvb(0, 1):uint() < 0x80 or tvb(1, 4):uint() % 0x80000000 ~= SCONE_VERSION then
        return nil
    end
    local scid = 6 + tvb(5, 1):uint()
    if scid >= len then
        return nil
    end
    local ends = scid + 1 + tvb(scid, 1):uint()
    return ends <= len and ends or nil
end

function scone.dissector(tvb, pinfo, tree)
    local length = scone_length(tvb)
    if not length then
        return 0
    end
    local subtree = tree:add(scone, tvb(0, length))
    local signal = scone_signal(tvb)
    local item = subtree:add(c.signal, tvb(0, 2), signal)
    if signal == SCONE_UNKNOWN then
        item:append_text(" (no advice)")
        subtree:append_text(", no advice")
    else
        local rate = 1e5 * 10 ^ (signal / 20)
        subtree:add(c.rate, tvb(0, 2), rate):append_text(" bits/s")
        subtree:append_text(string.format(", at most %.4g Mb/s", rate / 1e6))
    end
    subtree:add(c.version, tvb(1, 4))
    local dcid = tvb(5, 1):uint()
    if dcid > 0 then
        subtree:add(c.dcid, tvb(6, dcid))
    end
    if length > 7 + dcid then
        subtree:add(c.scid, tvb(7 + dcid, length - 7 - dcid))
    end
    if length == tvb:reported_len() then
        subtree:add_proto_expert_info(scone_alone)
    elseif length < tvb:captured_len() then
        quic:call(tvb(length):tvb(), pinfo, tree)
    end
    return tvb:captured_len()
end

scone:register_heuristic("udp", function(tvb, pinfo, tree)
    return scone_length(tvb) ~= nil and scone.dissector(tvb, pinfo, tree) > 0
end)

local indication = Proto("scone_indication", "SCONE indication")
local scone_indication = ProtoField.uint16("scone.indication", "Supports SCONE", base.HEX)
indication.fields = { scone_indication }
local udp_payload = Field.new("udp.payload")

function indication.dissector(_, _, tree)
    for _, field in ipairs({ udp_payload() }) do
        local payload = field.range
        local len = payload:len()
        -- Clients pad the datagrams of their first packets, which have long headers.
        if len >= SCONE_INITIAL_LEN and payload(0, 1):uint() >= 0xc0 and payload(len - 2, 2):uint() == SCONE_INDICATION then
            tree:add(scone_indication, payload(len - 2, 2))
        end
    end
end

register_postdissector(indication)
