"""Tools that attack, of more than one test."""

#: So many (COUNT) descriptors with each frame, whose flags are FLAG.
FLOOD_DESCRIPTORS = '''
import array, os, socket, time
def main():
    s = socket.socket(fileno=os.dup(3))
    pipes = [os.pipe() for _ in range(60)]
    fds = array.array("i", [fd for p in pipes for fd in p])
    frame = bytes([0, 170, 0, FLAG, 0, 0, 0, 5]) + bytes(8) + bytes([0, 0, 0, 1]) + b"x"
    for _ in range(2000):
        try:
            s.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds[:COUNT])])
        except PermissionError:
            return "refused"
        except OSError:
            break
    time.sleep(30)
    return "lived"
'''
