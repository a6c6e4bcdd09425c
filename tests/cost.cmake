# How long the long ones take, in seconds beside others on two cores: they start first, so that none is left over at
# the end. `busy`: it keeps two processors busy; the others mostly wait, and scripts/test runs more of them at once
# than there are processors.
set(test_costs
  "chaos.test_partition 24" "chaos.test_redis_sick 28" "chaos.test_storm 31" "chaos.test_swarm 19"
  "chaos.test_collisions 17 busy" "chaos.test_postgres_full 17" "chaos.test_slow_ways 16"
  "integration.test_audit 18 busy" "integration.test_bell 25" "integration.test_bench 13 busy"
  "integration.test_bench_scripts 28 busy"
  "integration.test_billing 15 busy" "integration.test_checker 29 busy" "integration.test_commit_unknown 15"
  "integration.test_fence 21" "integration.test_idle 26" "integration.test_lab 14" "integration.test_lock_acl 12"
  "integration.test_lock_clock 14" "integration.test_lock_renew_faults 24" "integration.test_lock_replicas 20"
  "integration.test_negative_control 18 busy" "integration.test_orders 40 busy"
  "integration.test_orders_of_two 34 busy" "integration.test_pgbouncer 35 busy" "integration.test_plans 23 busy"
  "integration.test_pool 21" "integration.test_pool_chaos 28" "integration.test_pool_deadlock 18 busy"
  "integration.test_pool_holder 24" "integration.test_pool_manners 14" "integration.test_pool_outage 25"
  "integration.test_quarantine 28" "integration.test_real_data 19 busy" "integration.test_recovery 13"
  "integration.test_renew_trips 13" "integration.test_seed 12 busy" "model.quorum 49")
foreach(line IN LISTS test_costs)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(GET words 0 name)
  list(GET words 1 cost)
  if(NOT TEST ${name})
    message(FATAL_ERROR "tests/cost.cmake: there is no test ${name}")
  endif()
  set_tests_properties(${name} PROPERTIES COST ${cost})
  if("busy" IN_LIST words)
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  endif()
endforeach()
