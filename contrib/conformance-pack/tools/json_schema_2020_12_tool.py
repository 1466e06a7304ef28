def main(**given):
    return given
