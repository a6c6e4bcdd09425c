# "Online Retail" (UCI) as published, comma-separated, to the orders file of `ledgerlock import`:
#   LC_ALL=C awk -f scripts/convert/online-retail.awk online-retail.csv > orders.csv
# The description is dropped (Latin-1, and its commas make lines of more than eight fields); a torn line is
# passed on as it is. Nothing is judged here: cancellations, missing customers and zero prices are the
# importer's to refuse.
BEGIN {
  FS = OFS = ","
  print "order_ref,customer_ref,sku,quantity,unit_price,placed_at"
}
NR == 1 { next }
NF < 8 { print; next }
{
  split($(NF - 3), at, "[/ :]") # day/month/year hour:minute
  print $1, $(NF - 1), $2, $(NF - 4), $(NF - 2), at[3] "-" at[2] "-" at[1] "T" at[4] ":" at[5] ":00Z"
}
