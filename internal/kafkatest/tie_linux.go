package kafkatest

import (
	"os/exec"
	"syscall"
)

// tie makes the system kill the child when its parent goes. The child has a
// process group of its own: an interrupt at the terminal reaches the parent alone,
// which then stops it in good order.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
