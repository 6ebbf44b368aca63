#!/usr/bin/env bash
# The gateway beside nginx from Debian: the same backend (an nginx with a file of 1 KB), the same load
# (wrk), one after the other in each round. ROUNDS rounds (default 7) of SECONDS_EACH (default 4);
# medians with the range, every round is printed. Needs Debian's package sources; installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-7} each=${SECONDS_EACH:-4} connections=${CONNECTIONS:-64}
work=$(mktemp -d)
chmod 755 "$work" # nginx reads as nobody
pids=()
finish() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT

cache=$(scripts/gateway/tools.sh)
nginx=$cache/usr/sbin/nginx
wrk() { LD_LIBRARY_PATH=$(echo "$cache"/usr/lib/*/ | tr ' ' ':') "$cache/usr/bin/wrk" "$@"; }
CGO_ENABLED=0 go build -trimpath -o "$work/" ./test/gatewaybench

free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
backend=$(free_port) proxy=$(free_port) gate=$(free_port) events=$(free_port) pprof=$(free_port)
mkdir -p "$work/www"
head -c 768 /dev/urandom | base64 -w0 >"$work/www/index.html" # 1,024 bytes
common="worker_processes ${WORKERS:-2}; daemon off; error_log $work/error.log; events { worker_connections 8192; }"
paths() { echo "access_log off; keepalive_requests 1000000; client_body_temp_path $work/$1.body; proxy_temp_path $work/$1.proxy; fastcgi_temp_path $work/$1.f; uwsgi_temp_path $work/$1.u; scgi_temp_path $work/$1.s;"; }
cat >"$work/backend.conf" <<CONF
$common
pid $work/backend.pid;
http { $(paths backend) open_file_cache max=10; server { listen 127.0.0.1:$backend; root $work/www; } }
CONF
cat >"$work/proxy.conf" <<CONF
$common
pid $work/proxy.pid;
http { $(paths proxy)
  upstream replicas { server 127.0.0.1:$backend; keepalive 256; keepalive_requests 1000000; }
  server { listen 127.0.0.1:$proxy; location / { proxy_pass http://replicas; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_set_header Host \$host; proxy_set_header X-Forwarded-For \$remote_addr; } } }
CONF
"$nginx" -c "$work/backend.conf" & pids+=($!)
"$nginx" -c "$work/proxy.conf" & pids+=($!)
PPROF=127.0.0.1:$pprof "$work/gatewaybench" gateway "127.0.0.1:$gate" "127.0.0.1:$backend" & gateway=$!; pids+=("$gateway")
for port in $backend $proxy $gate; do
	for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
done

echo "machine: $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg), $("$nginx" -v 2>&1 | cut -d: -f2), $(go version | cut -d' ' -f3)"
# One line of wrk: requests/s, p50 and p99 in ms, failed.
measure() { # name port connections
	local before after
	before=$(cpu_of "${1%%-*}")
	wrk -t1 "-c$3" "-d${each}s" --latency "http://127.0.0.1:$2/" | awk -v name="$1" '
		function ms(t) { return t ~ /us$/ ? t/1000 : t ~ /ms$/ ? t+0 : t*1000 }
		/50%/ { p50=ms($2) } /99%/ { p99=ms($2) } /Requests\/sec/ { rate=$2 } /requests in/ { n=$1 } /Non-2xx/ { bad=$NF } /Socket errors/ { bad=$0 }
		END { printf "%s %.0f %.3f %.3f %d %s\n", name, rate, p50, p99, n, bad==""?0:bad }' >"$work/line"
	after=$(cpu_of "${1%%-*}")
	read -r name rate p50 p99 n bad <"$work/line"
	echo "$name $rate $p50 $p99 $(awk -v t=$((after - before)) -v n="$n" 'BEGIN { printf "%.1f", n ? t*10000/n : 0 }') $bad"
}
# CPU time so far of the processes of a side, in hundredths of a second.
cpu_of() {
	local of=$gateway
	case $1 in direct) of=$(cat "$work/backend.pid") ;; nginx) of=$(cat "$work/proxy.pid") ;; esac
	cat "/proc/$of/stat" $(pgrep -P "$of" | sed 's|.*|/proc/&/stat|') | awk '{ t += $14+$15 } END { print t }'
}
for c in $connections 1; do
	for r in $(seq "$rounds"); do
		measure "direct-$c" "$backend" "$c"
		measure "nginx-$c" "$proxy" "$c"
		measure "gateway-$c" "$gate" "$c"
	done
done | tee "$work/rounds"
python3 - "$work/rounds" "$connections" <<'PY'
import statistics, sys
rounds = {}
for line in open(sys.argv[1]):
    name, rate, p50, p99, cpu, bad = line.split(None, 5)
    rounds.setdefault(name, []).append((float(rate), float(p50), float(p99), bad.strip(), float(cpu)))
def shown(name, at, f="{:.2f}"):
    v = [r[at] for r in rounds[name]]
    return (f + " [" + f + "–" + f + "]").format(statistics.median(v), min(v), max(v))
for name in rounds:
    print(f"{name:12} {shown(name, 0, '{:,.0f}')} requests/s, p50 {shown(name, 1)} ms, p99 {shown(name, 2)} ms, CPU a request {shown(name, 4, '{:.0f}')} µs, failed {[r[3] for r in rounds[name] if r[3] != '0'] or 0}")
c = sys.argv[2]
ratio = [g[0] / n[0] for g, n in zip(rounds[f"gateway-{c}"], rounds[f"nginx-{c}"])]
print(f"gateway / nginx with {c} connections, by round: median {statistics.median(ratio):.2f} [{min(ratio):.2f}–{max(ratio):.2f}]")
cpu = [n[4] / g[4] for g, n in zip(rounds[f"gateway-{c}"], rounds[f"nginx-{c}"]) if g[4]]
print(f"CPU time a request, nginx / gateway, by round: median {statistics.median(cpu):.2f} [{min(cpu):.2f}–{max(cpu):.2f}]")
for at, what in ((1, "p50"), (2, "p99")):
    for other in ("direct", "nginx"):
        d = [g[at] - o[at] for g, o in zip(rounds["gateway-1"], rounds[f"{other}-1"])]
        print(f"{what} of one client, gateway over {other}, by round: median {statistics.median(d):+.3f} ms [{min(d):+.3f}–{max(d):+.3f}]")
PY
echo
echo "where the gateway's CPU time goes, under load"
(wrk -t1 "-c$connections" -d6s "http://127.0.0.1:$gate/" >/dev/null) &
go tool pprof -top -cum -nodecount=60 -seconds 4 "http://127.0.0.1:$pprof/debug/pprof/profile" 2>/dev/null >"$work/profile"
wait $! || true
head -6 "$work/profile"
grep -E 'flat%|syscall.Syscall|net/http.\(\*conn\).serve|ReverseProxy\).ServeHTTP|gateway\.|persistConn\).(readLoop|writeLoop)$|Transport\).RoundTrip|runtime\.(mcall|gcBgMarkWorker|findRunnable)|mallocgc$' "$work/profile" || true
[ -z "${PROFILE:-}" ] || cp "$work/profile" "$PROFILE"

echo
ulimit -n "$(ulimit -Hn)"
"$work/gatewaybench" events "127.0.0.1:$events" & pids+=($!)
gate2=$(free_port)
"$work/gatewaybench" gateway "127.0.0.1:$gate2" "127.0.0.1:$events" & fresh=$!; pids+=("$fresh")
for port in $events $gate2; do
	for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
done
"$work/gatewaybench" streams "http://127.0.0.1:$gate2/" "${STREAMS:-5000}" "$fresh"
