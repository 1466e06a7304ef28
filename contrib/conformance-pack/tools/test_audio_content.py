import io
import wave

from mcpbox import Audio


def main():
    """A tenth of a second of silence."""
    data = io.BytesIO()
    with wave.open(data, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return Audio(data.getvalue(), "audio/wav")
