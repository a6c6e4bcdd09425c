#!/bin/bash
# Every link of a page leads to a file that is there, and its anchor to a heading; so does each docs/PAGE.md that code names.
set -euo pipefail
cd "$(dirname "$0")/../.."
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# The anchors of a page, as GitHub and GitLab make them from its headings.
anchors() { # page
  # shellcheck disable=SC2016 # backticks of Markdown
  awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
    sed 's/\[\([^]]*\)\]([^)]*)/\1/g; s/[^a-z0-9 _-]//g; s/ /-/g' | awk '{ print $0 (n[$0]++ ? "-" n[$0] - 1 : "") }'
}

# PAGE:LINE: TARGET of each link, without code.
links() { # pages
  # shellcheck disable=SC2016
  awk '
    FNR == 1 { code = 0 }
    /^ *```/ { code = !code }
    code || /^    / { next }
    {
      gsub(/`[^`]*`/, "")
      while (match($0, /\]\([^)]*\)/)) {
        print FILENAME ":" FNR ": " substr($0, RSTART + 2, RLENGTH - 3)
        $0 = substr($0, RSTART + RLENGTH)
      }
    }' "$@"
}

check() { # place, folder of the page, page, target
  local path=${4%%#*} anchor=
  [ "$4" = "$path" ] || anchor=${4#*#}
  case $path in
    "") path=$3 ;;
    *) path=$2/$path ;;
  esac
  if [ ! -e "$path" ]; then
    echo "$1: $4: there is no such file"
  elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -- "$anchor"; then
    echo "$1: $4: $path has no such heading"
  fi
}

mapfile -t pages < <(git ls-files --cached --others --exclude-standard '*.md' 2>/dev/null | xargs ls 2>/dev/null ||
  find . -name build -prune -o -name '*.md' -print)
[ "${#pages[@]}" -gt 10 ] || { echo "links: no pages found" && exit 1; }
while read -r place target; do
  page=${place%%:*}
  case $target in
    http:* | https:* | mailto:*) ;;
    *) check "${place%:}" "$(dirname "$page")" "$page" "$target" ;;
  esac
done < <(links "${pages[@]}") >"$list"
while IFS=: read -r file line target; do
  check "$file:$line" . "$file" "$target"
done < <(grep -rnoE '\bdocs/[a-z_-]+\.md(#[a-z0-9-]+)?' common worker ops sql labs tests config scripts cmake debian Dockerfile \
  docker-compose.yml CMakeLists.txt --exclude=links.sh) >>"$list"
[ ! -s "$list" ] || { sed 's/^/links: /' "$list" && exit 1; }
