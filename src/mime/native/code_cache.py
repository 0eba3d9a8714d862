def kept(key, make):
    return make()
