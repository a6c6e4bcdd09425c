-- KEYS: key ...  ARGV: id of the call
-- Answers, behind the id, for each key its value and the time that it has left; the value of a key that is no string is a number.
-- Writes nothing, so that it runs where the server refuses writes.
local answer = {ARGV[1]}
for i = 1, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  answer[2 * i] = type(value) == 'table' and 0 or value or ''
  answer[2 * i + 1] = redis.call('PTTL', KEYS[i])
end
return answer
