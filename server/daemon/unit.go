package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Unit is the text of a systemd unit that runs the server: the binary's absolute
// name, and the configuration file if one is named. KillMode=process leaves the
// supervisors of running jobs alone.
func Unit(binary, configFile string, user bool) string {
	args := "up"
	if configFile != "" {
		args += " --config " + quoteUnitWord(configFile)
	}
	target, runtime := "multi-user.target", "RuntimeDirectory=coxswain\nRuntimeDirectoryMode=0755\nRuntimeDirectoryPreserve=yes\nStateDirectory=coxswain\nStateDirectoryMode=0711\n"
	if user {
		target, runtime = "default.target", ""
	}
	return fmt.Sprintf(`[Unit]
Description=Coxswain, one control plane for GPU work
Documentation=https://github.com/coxswain-sched/coxswain
After=network.target

[Service]
Type=notify
ExecStart=%s %s
KillMode=process
Restart=on-failure
RestartSec=1
LimitNOFILE=1048576
TasksMax=infinity
Delegate=yes
%s
[Install]
WantedBy=%s
`, quoteUnitWord(binary), args, runtime, target)
}

// quoteUnitWord writes a word as systemd reads it.
func quoteUnitWord(s string) string {
	if strings.ContainsAny(s, " \t\"'\\$%;") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$", "%", "%%").Replace(s) + `"`
	}
	return s
}

// notifySystemd reports a state to systemd, where it started us (sd_notify).
func notifySystemd(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	return errors.Join(err, c.Close())
}
