# Reads a JUnit report of ctest: each function of a cmocka program counts, each assertion of a file of SQL, and each test that is neither.
# Prints "count PASSED FAILED SKIPPED", a line for each function or test that failed or was skipped, and for each
# test that may be run again "again TEST where it failed". A test that broke a promise is not run again; neither is a
# program that crashed, hung until it was killed, or met a sanitizer's error, nor SQL that came out wrong: none of these is chance.
# -v again=0: nothing is to be run again, all failures count.

function say(what, name, reason) {
  notes[++noted] = what ": " name (reason != "" ? ": " reason : "")
}

function finish(    i) {
  if (test == "") return
  if (status == "fail" && began && !summary) broken = 1
  if (functions == 0 && status == "run") here["passed"]++
  else if (functions == 0 && status == "fail") { here["failed"]++; say("failed", test, place) }
  else if (functions == 0) { here["skipped"]++; say("skipped", test, reason) }
  else if (status == "notrun" && spared == 0) { here["skipped"]++; say("skipped", test, reason) }
  else if (status == "fail" && bad == 0) { here["failed"]++; say("failed", test, "it ended before its functions did") }
  if (here["failed"] > 0 && again && !broken)
    print "again " test " " (place != "" ? place : "no line of a test")
  else {
    for (i = 1; i <= noted; i++) print notes[i]
    for (i in here) sum[i] += here[i]
  }
  test = ""
}

/^[[:space:]]*<testcase / {
  finish()
  match($0, / name="[^"]*"/)
  test = substr($0, RSTART + 7, RLENGTH - 8)
  match($0, / status="[^"]*"/)
  status = substr($0, RSTART + 9, RLENGTH - 10)
  functions = bad = spared = began = summary = noted = broken = 0
  reason = place = function_now = ""
  delete here
}
test == "" { next }
{ sub(/^.*<system-out>/, "") }
/PROMISE BROKEN|ERROR: (Address|Leak|Thread|Undefined)|: runtime error:|Test failed with exception/ { broken = 1 }
/^\[==========\] ([^ ]+: )?Running / { began = 1; summary = 0; next }
/^\[==========\] ([^ ]+: )?[0-9]+ test/ { summary = 1; next }
/^\[ RUN      \] / { reason = ""; function_now = $NF; next }
/^(SKIPPED|[Ss]kipped): / { reason = $0; sub(/^[A-Za-z]*: /, "", reason) }
summary { next }
place == "" && match($0, /[a-z_0-9]+\.c:[0-9]+/) && /error|Failure|ERROR/ {
  place = function_now " at " substr($0, RSTART, RLENGTH)
}
/^# case / { function_now = $3 }
/^ok [0-9]+ - / { functions++; here["passed"]++ }
/^not ok [0-9]+ - / {
  functions++; bad++; here["failed"]++; broken = 1
  sub(/^not ok [0-9]+ - /, "")
  say("failed", test " " function_now, $0)
}
/^\[       OK \] / { functions++; here["passed"]++ }
/^\[  SKIPPED \] / { functions++; spared++; here["skipped"]++; say("skipped", test " " $NF, reason); reason = "" }
/^\[  (FAILED  |ERROR   )\] [a-zA-Z_0-9]+$/ {
  functions++; bad++; here["failed"]++
  if (place == "") place = $NF
  say("failed", test " " $NF, broken ? "a promise is broken" : "")
}
END {
  finish()
  print "count", sum["passed"] + 0, sum["failed"] + 0, sum["skipped"] + 0
}
