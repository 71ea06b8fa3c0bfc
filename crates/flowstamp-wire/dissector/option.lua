
-- XCP, RCP and VCP on Linux: the stamp as a TCP option (kind 253, RFC 6994's identifiers "RC", "XC" and "VC"), shown behind the packet's
-- other protocols: tshark itself knows only the option's kind and identifier. Rates are bytes/s, times seconds, so that
-- "flowstamp.rate < 125000" is a display filter.
--
--   0  253 | length 16 or 8   2  "RC"  4  echo, bytes/ms                    8  rate, bytes/ms   12  RTT  14  flags
--                                "XC"     echo, bytes/s: sum of changes        delta, bytes/s            packets in flight
--                                "VC"     echo, last code and three counts,    t_rho, us        -        flags
--                                         or 0 and t_rho, us
--
-- VCP's code is in IP's ECN bits: ip.dsfield.ecn, ipv6.tclass.ecn.

local OPTION_KIND = 253
local OPTION_LENGTHS = { [8] = true, [16] = true }
local OPTION_LAWS = { [0x5243] = "RCP", [0x5843] = "XCP", [0x5643] = "VCP" }
local OPTION_UNBOUNDED_RATE, OPTION_UNBOUNDED_DELTA = 0xffffffff, 0x7fffffff
local OPTION_RTT_UNKNOWN = 0xffff

local stamp = Proto("flowstamp", "Flowstamp TCP option")
local s = {
    law = ProtoField.string("flowstamp.law", "Law"),
    length = ProtoField.uint8("flowstamp.length", "Length", base.DEC),
    echo = ProtoField.double("flowstamp.echo", "Echo"),
    rate = ProtoField.double("flowstamp.rate", "Rate"),
    delta = ProtoField.int32("flowstamp.delta", "Change of throughput", base.DEC),
    rtt = ProtoField.double("flowstamp.rtt", "RTT"),
    handshake = ProtoField.bool("flowstamp.handshake", "Handshake", 16, nil, 0x0001),
    in_flight = ProtoField.uint16("flowstamp.in_flight", "Packets in flight", base.DEC),
    t_rho = ProtoField.double("flowstamp.t_rho", "t_rho"),
    code = ProtoField.uint8("flowstamp.code", "Code that came last", base.DEC),
    came = {
        ProtoField.uint8("flowstamp.came_low", "Packets with 01, modulo 256", base.DEC),
        ProtoField.uint8("flowstamp.came_high", "Packets with 10, modulo 256", base.DEC),
        ProtoField.uint8("flowstamp.came_overload", "Packets with 11, modulo 256", base.DEC),
    },
}
stamp.fields = {
    s.law, s.length, s.echo, s.rate, s.delta, s.rtt, s.handshake, s.in_flight, s.t_rho, s.code, s.came[1], s.came[2], s.came[3],
}

local tcp_options = Field.new("tcp.options")

-- The option that begins at `at` of `options`, or nil: what is malformed is TCP's own dissector's to say.
local function is_stamp(options, at, length)
    if options(at, 1):uint() ~= OPTION_KIND or not OPTION_LENGTHS[length] or at + length > options:len() then
        return nil
    end
    return OPTION_LAWS[options(at + 2, 2):uint()]
end

local function show_t_rho(range, us, tree)
    tree:add(s.t_rho, range, us / 1e6):append_text(us == 0 and " (no router has met the packet)" or " s")
end

local function show_vcp(option, tree)
    if option(4, 1):uint() > 0 then
        tree:add(s.code, option(4, 1))
        for number, field in ipairs(s.came) do
            tree:add(field, option(4 + number, 1))
        end
    elseif option(4, 4):uint() > 0 then
        tree:add(s.echo, option(4, 4), option(4, 4):uint() / 1e6):append_text(" s, t_rho of the handshake")
    end
    if option:len() == 16 then
        show_t_rho(option(8, 4), option(8, 4):uint(), tree)
        tree:add(s.handshake, option(14, 2))
    end
end

local function show(law, option, tree)
    local subtree = tree:add(stamp, option)
    subtree:append_text(", " .. law)
    subtree:add(s.law, option(2, 2), law)
    subtree:add(s.length, option(1, 1)):append_text(" bytes")
    if law == "VCP" then
        return show_vcp(option, subtree)
    end
    local echo = option(4, 4):uint()
    if law == "RCP" then
        subtree:add(s.echo, option(4, 4), echo * 1000):append_text(echo == 0 and " (none)" or " bytes/s")
    else
        subtree:add(s.echo, option(4, 4), echo)
            :append_text(echo == 0 and " (none)" or " bytes/s, sum of changes modulo 2^32")
    end
    if option:len() < 16 then
        return
    end
    if law == "RCP" then
        local rate = option(8, 4):uint()
        local text = rate == OPTION_UNBOUNDED_RATE and " bytes/s (as much as there is)" or " bytes/s"
        subtree:add(s.rate, option(8, 4), rate * 1000):append_text(text)
    else
        local delta = option(8, 4):int()
        local text = delta == OPTION_UNBOUNDED_DELTA and " bytes/s (as much as there is)" or " bytes/s"
        subtree:add(s.delta, option(8, 4)):append_text(text)
    end
    local rtt = option(12, 2):uint()
    if rtt == OPTION_RTT_UNKNOWN then
        subtree:add(option(12, 2), "RTT: unknown")
    else
        subtree:add(s.rtt, option(12, 2), (rtt % 0x1000) * 2 ^ math.floor(rtt / 0x1000) / 1e6):append_text(" s")
    end
    subtree:add(law == "RCP" and s.handshake or s.in_flight, option(14, 2))
end

function stamp.dissector(_, _, tree)
    for _, field in ipairs({ tcp_options() }) do
        local options = field.range
        local at = 0
        while at < options:len() do
            local kind = options(at, 1):uint()
            if kind == 0 then
                break
            end
            -- A no-op is the only other option without a length.
            local length = 1
            if kind ~= 1 then
                length = at + 1 < options:len() and options(at + 1, 1):uint() or 0
                if length < 2 then
                    break
                end
                local law = is_stamp(options, at, length)
                if law then
                    show(law, options(at, length), tree)
                end
            end
            at = at + length
        end
    end
end

register_postdissector(stamp)
