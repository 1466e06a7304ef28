"""An ELF file's hardening, read from its bytes: no tool that might be missing,
or mean something else by its words, stands between."""
import re
import struct

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_PROPERTY = 0x6474e551, 0x6474e552, 0x6474e553
PF_X, PF_W = 1, 2
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_SYMENT = 1, 5, 6, 7, 8, 11
DT_RPATH, DT_TEXTREL, DT_BIND_NOW, DT_RUNPATH = 15, 22, 24, 29
DT_FLAGS, DT_FLAGS_1 = 30, 0x6ffffffb
DF_BIND_NOW, DF_TEXTREL, DF_1_NOW, DF_1_PIE = 8, 4, 1, 0x08000000
R_X86_64_RELATIVE = 8
NT_GNU_PROPERTY_TYPE_0, X86_FEATURE_1_AND = 5, 0xc0000002
SHSTK = 2
ENDBR64 = b"\xf3\x0f\x1e\xfa"


class Elf:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit ELF file")
        (self.type,) = struct.unpack_from("<H", self.data, 16)
        start, sections = struct.unpack_from("<QQ", self.data, 32)
        size, count, sh_size, sh_count, names = struct.unpack_from("<HHHHH", self.data, 54)
        self.segments = []  # kind, flags, offset, address, length in the file
        for i in range(count):
            kind, flags, offset, address, _, length = struct.unpack_from(
                "<IIQQQQ", self.data, start + i * size)
            self.segments.append((kind, flags, offset, address, length))
        rows = [struct.unpack_from("<IIQQQQ", self.data, sections + i * sh_size)
                for i in range(sh_count)]
        self.sections = {}  # name -> flags, address, offset, length
        for name, _, flags, address, offset, length in rows:
            self.sections[self.string(rows[names][4] + name)] = (flags, address, offset, length)
        self.dynamic = []
        for kind, _, offset, _, length in self.segments:
            if kind == PT_DYNAMIC:
                self.dynamic = [struct.unpack_from("<QQ", self.data, at)
                                for at in range(offset, offset + length, 16)]

    def string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def tag(self, wanted):
        return [value for tag, value in self.dynamic if tag == wanted]

    def offset(self, address):
        for kind, _, offset, start, length in self.segments:
            if kind == PT_LOAD and start <= address < start + length:
                return offset + address - start
        raise ValueError(f"{self.path}: nothing at {address:#x}")

    def needed(self):
        (table,) = self.tag(DT_STRTAB)
        return [self.string(self.offset(table) + n) for n in self.tag(DT_NEEDED)]

    def imports(self):
        """Names of the dynamic symbols that are defined elsewhere."""
        (table,) = self.tag(DT_STRTAB)
        _, _, offset, length = self.sections[".dynsym"]
        found = set()
        for at in range(offset + 24, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, at)
            if section == 0:
                found.add(self.string(self.offset(table) + name))
        return found

    def features(self):
        """X86_FEATURE_1_AND of .note.gnu.property, 0 without it."""
        if ".note.gnu.property" not in self.sections:
            return 0
        _, _, at, length = self.sections[".note.gnu.property"]
        end = at + length
        while at < end:
            names, size, kind = struct.unpack_from("<III", self.data, at)
            at += 12 + (names + 7) // 8 * 8 if names > 4 else 16
            if kind == NT_GNU_PROPERTY_TYPE_0:
                inner = at
                while inner < at + size:
                    what, n = struct.unpack_from("<II", self.data, inner)
                    if what == X86_FEATURE_1_AND:
                        return struct.unpack_from("<I", self.data, inner + 8)[0]
                    inner += 8 + (n + 7) // 8 * 8
            at += (size + 7) // 8 * 8
        return 0

    def taken_functions(self):
        """Offsets of the code whose address stands in data: what is called by a
        pointer."""
        _, start, _, length = self.sections[".text"]
        found = set()
        for name in (".rela.dyn",):
            _, _, offset, size = self.sections.get(name, (0, 0, 0, 0))
            for at in range(offset, offset + size, 24):
                _, info, addend = struct.unpack_from("<QQq", self.data, at)
                if info & 0xffffffff == R_X86_64_RELATIVE and start <= addend < start + length:
                    found.add(self.offset(addend))
        return found


def weaknesses(path):
    """What is missing, by name; empty for a hardened program."""
    e = Elf(path)
    flags = (e.tag(DT_FLAGS) + [0])[0]
    flags_1 = (e.tag(DT_FLAGS_1) + [0])[0]
    segments = {kind: flags for kind, flags, _, _, _ in e.segments}
    found = []
    if e.type != ET_DYN or not flags_1 & DF_1_PIE:
        found.append("PIE")
    if PT_GNU_RELRO not in segments:
        found.append("RELRO")
    if not flags & DF_BIND_NOW and not flags_1 & DF_1_NOW and not e.tag(DT_BIND_NOW):
        found.append("NOW")
    if segments.get(PT_GNU_STACK, PF_X) & PF_X:
        found.append("noexecstack")
    if any(kind == PT_LOAD and flags & PF_X and flags & PF_W
           for kind, flags, _, _, _ in e.segments):
        found.append("W^X")
    if e.tag(DT_TEXTREL) or flags & DF_TEXTREL:
        found.append("no TEXTREL")
    if e.tag(DT_RPATH) or e.tag(DT_RUNPATH):
        found.append("no RUNPATH")
    imports = e.imports()
    if "__stack_chk_fail" not in imports:
        found.append("stack protector")
    if not any(re.fullmatch(r"__\w+_chk", name) for name in imports):
        found.append("FORTIFY")
    if not e.features() & SHSTK:
        found.append("SHSTK")
    bare = [at for at in e.taken_functions() if e.data[at:at + 4] != ENDBR64]
    if bare or not e.taken_functions():
        found.append("IBT")
    return found
