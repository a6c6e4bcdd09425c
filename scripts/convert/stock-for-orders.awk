# Stock for what an orders file of `ledgerlock import` asks for, all of it or a part:
#   LC_ALL=C awk -f scripts/convert/stock-for-orders.awk orders.csv > stock.csv
#   LC_ALL=C awk -v divide=2 -f scripts/convert/stock-for-orders.awk orders.csv > stock.csv
# Counts good lines only; the price is that of the SKU's first good line. For files without quotes.
BEGIN { FS = OFS = ","; if (!divide) divide = 1 }
NR > 1 && NF == 6 && $2 != "" && $4 > 0 && $5 > 0 {
  if (!($3 in units)) {
    price[$3] = $5
    order[++n] = $3
  }
  units[$3] += $4
}
END {
  print "sku,quantity,unit_price"
  for (i = 1; i <= n; i++)
    print order[i], int(units[order[i]] / divide), price[order[i]]
}
