-- KEYS: record, lock ...  ARGV: nonce, lease_ms, ident, not_after_ms, mode ('any' or 'all'),
-- marks, not_before_ms (both may be missing)
-- Answers {'ok', token, i, pttl, ...} with the busy keys by index; {'busy', i, pttl, ...};
-- {'late', now_ms} when it runs after not_after_ms, or before not_before_ms: the clock went back, and
-- not_after_ms means nothing; {'epoch', record_epoch}.
-- The same nonce again gets the same token and what it holds, with the time that is left.
-- 'busy' marks the first `marks` busy keys as waited for, so that their release pushes a wake-up.
-- Takes 16 keys with one command, and these one by one only when one of them is busy: most are free. It costs three quarters
-- of a SET for each. Nobody sees a key before the script is over, so none is ever seen without its end.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[4]) or now < tonumber(ARGV[7] or '0') then return {'late', string.format('%.0f', now)} end

local record = redis.call('HMGET', KEYS[1], 'epoch', 'ident', 'n')
if record[2] ~= ARGV[3] then return {'epoch', record[1] or '0'} end

local n = (record[3] or 0) + 1 -- the next token; it is used up by a grant only
if n >= 1099511627776 then return {'epoch', record[1]} end
local mark, lease, count = ARGV[1] .. '|', ARGV[2], #KEYS - 1
local token = string.format('%.0f', record[1] * 1099511627776 + n)
local value, taken, busy, earlier = mark .. token, {}, {}, nil
local call, pcall, keys, ends = redis.call, redis.pcall, KEYS, string.format('%.0f', now + lease)

local function give_back()
  for _, i in ipairs(taken) do redis.call('DEL', KEYS[i + 1]) end
end
local function take_one(i)
  if call('SET', keys[i + 1], value, 'NX', 'PX', lease) then
    taken[#taken + 1] = i
    return
  end
  local held = call('MGET', keys[i + 1])[1] -- not GET: a key of another type reads as nothing
  if held and held ~= value and string.sub(held, 1, #mark) == mark then
    earlier = string.sub(held, #mark + 1)
  else
    busy[#busy + 1] = i
  end
end
local words = {}
local function take_all_or_none(from, till)
  local at, taken_ct = 1, #taken
  for i = from, till do
    words[at], words[at + 1], at = keys[i + 1], value, at + 2
  end
  if call('MSETNX', unpack(words, 1, at - 1)) == 0 then return false end
  for i = from, till do
    taken_ct = taken_ct + 1
    taken[taken_ct] = i
  end
  return true
end

for from = 1, count, 16 do
  local till = math.min(from + 15, count)
  if from < till and take_all_or_none(from, till) then
    for i = from, till do
      local done = pcall('PEXPIREAT', keys[i + 1], ends)
      if done ~= 1 then -- the user may not: no key stays without an end
        give_back()
        return done
      end
    end
  else
    for i = from, till do take_one(i) end
  end
end

local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = redis.call('PTTL', KEYS[i + 1])
  end
  return head
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == count) then
  give_back()
  redis.call('HDEL', KEYS[1], '') -- changes nothing; a demoted primary must say READONLY, not what it last knew
  local marks = math.min(tonumber(ARGV[6] or '0'), #busy)
  if marks > 0 then
    local prefix = string.sub(KEYS[1], 1, -7) -- the record is <prefix>!fence
    redis.call('SET', prefix .. '!waiters', 1, 'PX', 1000)
    for i = 1, marks do
      redis.call('SET', prefix .. '!wait:' .. string.sub(KEYS[busy[i] + 1], #prefix + 1), 1, 'PX', 1000)
    end
  end
  return answer({'busy'})
end

if earlier and ARGV[5] == 'any' then
  -- A repeat adds nothing to what its first run took: its token may be lower by now than one a free key has seen.
  give_back()
  for _, i in ipairs(taken) do busy[#busy + 1] = i end
elseif earlier then
  for _, i in ipairs(taken) do redis.call('SET', KEYS[i + 1], mark .. earlier, 'PX', lease) end
else
  redis.call('HINCRBY', KEYS[1], 'n', 1)
end
return answer({'ok', earlier or token})
