# "Telco Customer Churn" (IBM) as published to the subscriptions file of `ledgerlock import`:
#   awk -v now=2024-01-01 -f scripts/convert/telco-churn.awk telco-customer-churn.csv > subscriptions.csv
# Month-to-month is charged every month; one year and two year contracts 12 and 24 monthly charges at once,
# every one or two years. Each began as many months before now as its sixth column says (choose a day up to the 28th), so at
# now the number of periods due is these months / interval + 1, rounded down.
function cents(text, part) {
  split(text "." , part, ".")
  return part[1] * 100 + substr(part[2] "00", 1, 2)
}
BEGIN {
  FS = OFS = ","
  print "customer_ref,plan,amount,unit,every,anchor_at"
  months["Month-to-month"] = 1
  months["One year"] = 12
  months["Two year"] = 24
  split(now, today, "-")
}
NR == 1 { next }
{
  m = months[$16]
  amount = cents($19) * m
  began = today[1] * 12 + today[2] - 1 - $6
  print $1, $16, sprintf("%d.%02d", int(amount / 100), amount % 100), m == 1 ? "month" : "year",
        m == 24 ? 2 : 1, sprintf("%04d-%02d-%02dT00:00:00Z", int(began / 12), began % 12 + 1, today[3])
}
