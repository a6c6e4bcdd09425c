-- KEYS: record, lock ...  ARGV: nonce, lease_ms, ident, not_after_ms, mode ('any' or 'all')
-- Answers {'ok', token, i, pttl, ...} with the busy keys by index; {'busy', i, pttl, ...};
-- {'late', now_ms} when it runs after not_after_ms; {'epoch', record_epoch}.
-- The same nonce again gets the same token and what it holds, with the time that is left.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[4]) then return {'late', string.format('%.0f', now)} end

local record = redis.call('HMGET', KEYS[1], 'epoch', 'ident')
if record[2] ~= ARGV[3] then return {'epoch', record[1] or '0'} end

local mark = ARGV[1] .. '|'
local held = redis.call('MGET', unpack(KEYS, 2))
local free, busy, token = {}, {}, nil
for i = 1, #held do
  local value = held[i]
  if not value then
    free[#free + 1] = i
  elseif string.sub(value, 1, #mark) == mark then
    token = string.sub(value, #mark + 1)
  else
    busy[#busy + 1] = i
  end
end

local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = redis.call('PTTL', KEYS[i + 1])
  end
  return head
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then return answer({'busy'}) end

if not token then
  local n = redis.call('HINCRBY', KEYS[1], 'n', 1)
  if n >= 1099511627776 then return {'epoch', record[1]} end
  token = string.format('%.0f', record[1] * 1099511627776 + n)
end
local value, taken = mark .. token, {}
for _, i in ipairs(free) do
  -- NX although MGET found nothing: a key of another type reads as nothing and is not ours
  if redis.call('SET', KEYS[i + 1], value, 'NX', 'PX', ARGV[2]) then
    taken[#taken + 1] = KEYS[i + 1]
  else
    busy[#busy + 1] = i
  end
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then
  if #taken > 0 then redis.call('DEL', unpack(taken)) end
  return answer({'busy'})
end
return answer({'ok', token})
