-- KEYS: lock ...  ARGV: mark ("nonce|"), prefix (may be missing: nobody is woken)
-- Deletes the keys whose value begins with the mark, and pushes one wake-up for each that is waited for. Answers one character a key: 1 deleted, 0 gone, - somebody else's.
local held = redis.call('MGET', unpack(KEYS))
local mark, first, mine, answer, alike = ARGV[1], held[1], KEYS, {}, true
local function is_mine(value) return value and string.sub(value, 1, #mark) == mark end

for i = 2, #held do
  if held[i] ~= first then alike = false end
end
if alike and is_mine(first) then -- as nearly always: the keys of a tenure carry one value, and one look tells of all
  answer[1] = string.rep('1', #held)
else
  mine = {}
  for i = 1, #held do
    if is_mine(held[i]) then
      mine[#mine + 1] = KEYS[i]
      answer[i] = '1'
    else
      answer[i] = held[i] and '-' or '0'
    end
  end
end
if #mine > 0 then redis.call('DEL', unpack(mine)) end

local prefix = ARGV[2]
if #mine > 0 and prefix and redis.call('EXISTS', prefix .. '!waiters') == 1 then
  local marks = {}
  for i = 1, #mine do
    mine[i] = string.sub(mine[i], #prefix + 1)
    marks[i] = prefix .. '!wait:' .. mine[i]
  end
  marks = redis.call('MGET', unpack(marks))
  for i = 1, #mine do
    local list = prefix .. '!wake:' .. mine[i]
    if marks[i] and redis.call('EXISTS', list) == 0 then
      redis.call('LPUSH', list, 1)
      redis.call('PEXPIRE', list, 1000)
    end
  end
end
return table.concat(answer)
