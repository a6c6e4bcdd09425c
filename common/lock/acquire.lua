-- KEYS: last token, lock ...
-- ARGV: nonce, lease_ms, not_before_ms, not_after_ms, mode ('all', 'any', or how many of the keys), floor, marks, how a value
-- ends ('', the holder's text, '|w'), id of the call
-- Takes the free keys. Answers, behind the id, {'ok', token, i, pttl, ...} with the busy keys by index; of a number of keys
-- {'some', token, i, ...}, the keys that were taken; {'busy', i, pttl, ...}: nothing was taken; {'late'}: it ran outside of its
-- window of server time.
-- token = max(last + 1, server time in microseconds, floor + 1). The same nonce again gets the same token and what it
-- holds, never more: a key that became free since may have seen a higher token. 'busy' marks the first `marks` busy keys
-- as waited for: their values end in "|w" then, and their release is followed by a wake-up. A waiter takes its keys so, since
-- others may wait with it.
-- The first free key is set with its end; the others are copies of it, the end included: a third cheaper than a SET each.
local call, id = redis.call, ARGV[9]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now < ARGV[3] * 1000 or now > ARGV[4] * 1000 then return {id, 'late'} end

local last = call('GET', KEYS[1]) or '0'
if not string.find(last, '^%d+$') then return redis.error_reply('ERR the key ' .. KEYS[1] .. ' holds no token: delete it') end
local token = math.max(last + 1, now, ARGV[6] + 1)
if token >= 9006099743113216 then return redis.error_reply('ERR the tokens are used up: delete the key ' .. KEYS[1]) end
token = string.format('%.0f', token)
local keys, mark, lease, mode, count = KEYS, ARGV[1] .. '|', ARGV[2], ARGV[5], #KEYS - 1
local want, value = tonumber(mode), mark .. token .. ARGV[8]
local free, first = 1, nil -- free: the first key that is not

while not want and free <= count do
  local key = keys[free + 1]
  if first then
    if call('COPY', first, key) ~= 1 then break end
  elseif call('SET', key, value, 'NX', 'PX', lease) then
    first = key
  else
    break
  end
  free = free + 1
end
if not want and free > count then -- as nearly always: nobody has any of them
  call('SET', keys[1], token)
  return {id, 'ok', token}
end

local busy, mine, old, earlier = {}, {}, {}, nil -- old: by index, not taken now

local function is_ours(i) -- MGET, not GET: a key of another type reads as nothing and is busy
  local held = call('MGET', keys[i + 1])[1]
  local is_mine = held and string.sub(held, 1, #mark) == mark
  if is_mine then earlier = string.match(held, '%d+', #mark + 1) end
  return is_mine
end
local function note_old(i)
  local list = is_ours(i) and mine or busy
  list[#list + 1] = i
  old[i] = true
end
local function give_back_taken()
  for i = 1, count do
    if not old[i] then call('DEL', keys[i + 1]) end
  end
end
local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = call('PTTL', keys[i + 1])
  end
  return head
end

if want then
  for i = 1, count do -- what the nonce has already comes first, wherever it stands
    if is_ours(i) then mine[#mine + 1] = i end
  end
  for i = 1, count do
    if #mine == want then
      call('SET', keys[1], earlier and last or token) -- WAIT counts what this connection wrote
      return {id, 'some', earlier or token, unpack(mine)}
    end
    if not earlier and call('SET', keys[i + 1], value, 'NX', 'PX', lease) then
      mine[#mine + 1] = i
    else
      busy[#busy + 1] = i
    end
  end
  if #mine == want then
    call('SET', keys[1], token)
    return {id, 'some', token, unpack(mine)}
  end
  for _, i in ipairs(mine) do call('DEL', keys[i + 1]) end
else
  note_old(free)
  for i = free + 1, count do
    local key = keys[i + 1]
    if first then
      if call('COPY', first, key) ~= 1 then note_old(i) end
    elseif call('SET', key, value, 'NX', 'PX', lease) then
      first = key
    else
      note_old(i)
    end
  end
  if earlier then
    give_back_taken()
    for i = 1, count do
      if not old[i] then busy[#busy + 1] = i end
    end
  end
  if #busy == 0 or (mode == 'any' and #busy < count) then
    call('SET', keys[1], earlier and last or token) -- a repeat too, for WAIT
    return answer({id, 'ok', earlier or token})
  end
  if not earlier then give_back_taken() end
  for _, i in ipairs(mine) do call('DEL', keys[i + 1]) end
end

call('PERSIST', keys[1]) -- changes nothing; a demoted primary must say READONLY, not what it last knew
for k = 1, math.min(tonumber(ARGV[7]), #busy) do
  local key = keys[busy[k] + 1]
  local held = call('MGET', key)[1]
  local is_alike = held and (string.find(held, '^%x+|%d+$') or string.find(held, '^%x+|%d+|=[^|]*$'))
    and string.find(held, '|', 1, true) == #ARGV[1] + 1 -- else another client's
  if is_alike then redis.pcall('SET', key, held .. '|w', 'XX', 'KEEPTTL') end -- a server that is full gives no hint
end
return answer({id, 'busy'})
