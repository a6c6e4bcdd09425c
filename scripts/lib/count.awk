# Counts what a JUnit report of ctest tells: each function of a cmocka program, and each test that is no such program.
# Prints "count PASSED FAILED SKIPPED LEFT" and one line for each function or test that failed or was skipped.

function say(what, name, reason) {
  print what ": " name (reason != "" ? ": " reason : "")
}

function finish() {
  if (test == "") return
  if (functions == 0 && status == "run") passed++
  else if (functions == 0 && status == "fail") { failed++; say("failed", test, "") }
  else if (functions == 0) { skipped++; say("skipped", test, reason) }
  else if (status == "notrun" && spared == 0) { skipped++; say("skipped", test, reason) }
  else if (status == "fail" && bad == 0) { failed++; say("failed", test, "it ended before its functions did") }
  test = ""
}

/^[[:space:]]*<testcase / {
  finish()
  match($0, / name="[^"]*"/)
  test = substr($0, RSTART + 7, RLENGTH - 8)
  match($0, / status="[^"]*"/)
  status = substr($0, RSTART + 9, RLENGTH - 10)
  functions = bad = spared = summary = 0
  reason = ""
}
test == "" { next }
{ sub(/^.*<system-out>/, "") }
/^\[==========\] Running / { summary = 0; next }
/^\[==========\] [0-9]+ test/ { summary = 1; next }
/^\[ RUN      \] / { reason = ""; next }
/^(SKIPPED|[Ss]kipped): / { reason = $0; sub(/^[A-Za-z]*: /, "", reason) }
summary { next }
/^\[       OK \] / { functions++; passed++ }
/^\[ LEFT OUT \] / { left++ }
/^\[  SKIPPED \] / { functions++; spared++; skipped++; say("skipped", test " " $NF, reason); reason = "" }
/^\[  FAILED  \] [a-zA-Z_0-9]+$/ { functions++; bad++; failed++; say("failed", test " " $NF, "") }
END {
  finish()
  print "count", passed + 0, failed + 0, skipped + 0, left + 0
}
