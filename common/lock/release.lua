-- KEYS: last token, lock ...  ARGV: mark ("nonce|"), how: '' or 'whole', id of the call
-- Deletes the keys whose value begins with the mark, or with 'whole' is the mark (empty: a key of another type, too), and
-- pushes one wake-up for each that is waited for. Answers, behind the id, one character a key: 1 deleted, 0 gone, - somebody else's.
local call, find, prefix = redis.call, string.find, string.sub(KEYS[1], 1, -6) -- the first key is <prefix>!last
local held = call('MGET', unpack(KEYS, 2))
local mark, whole, first, mine, base, answer, alike = ARGV[1], ARGV[2] == 'whole', held[1], {}, 0, {}, true

local function is_ours(value)
  if whole then return value == mark end
  return find(value, mark, 1, true) == 1
end

for i = 2, #held do
  if held[i] ~= first then
    alike = false
    break
  end
end
if alike and first and is_ours(first) then -- as nearly always: one value, and one comparison tells of all
  call('DEL', unpack(KEYS, 2))
  mine, base, answer[1] = KEYS, 1, string.rep('1', #held)
else
  for i = 1, #held do
    local value = held[i] or (whole and call('EXISTS', KEYS[i + 1]) == 1 and '') -- no string
    if value and is_ours(value) then
      mine[#mine + 1] = KEYS[i + 1]
      answer[i] = '1'
    else
      answer[i] = value and '-' or '0'
    end
  end
  call('DEL', KEYS[1] .. ':none', unpack(mine)) -- also of nothing: a demoted primary must say READONLY
end

if #mine > base and call('EXISTS', prefix .. '!waiters') == 1 then
  for i = base + 1, #mine do
    local name = string.sub(mine[i], #prefix + 1)
    local list = prefix .. '!wake:' .. name
    if call('ZSCORE', prefix .. '!waiters', name) and call('EXISTS', list) == 0 then
      redis.pcall('LPUSH', list, 1) -- a server that is full gives no hint
      call('PEXPIRE', list, 1000)
    end
  end
end
return {ARGV[3], table.concat(answer)}
